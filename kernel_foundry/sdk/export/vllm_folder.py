"""A plug-in for vLLM: a package whose entry point registers the operator."""

from collections.abc import Sequence
from typing import Final

from kernel_foundry.sdk.export.function_file import check_gpu
from kernel_foundry.sdk.export.python_text import package_name, plain_text
from kernel_foundry.sdk.export.winner import Winner

_PROJECT: Final = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "{package}"
version = "1.0.0"
description = "CUDA kernels for {task}, found by Kernel Foundry, as a plug-in for vLLM"
requires-python = ">=3.10"
dependencies = ["torch"]

[project.entry-points."vllm.general_plugins"]
{name} = "{name}:register"

[tool.setuptools]
packages = ["{name}"]
"""
_MODULE: Final = '''\
"""Kernels for {task}: vLLM registers their operator in each of its processes.

A model uses them by `Module` or `swap` of `{name}.kernels`, or by the operator
`torch.ops.kfoundry`. No layer of vLLM's own is replaced.
"""


def register() -> None:
    """Register the operator; called by vLLM, also more than once."""
    from {name} import kernels

    assert kernels.operator is not None
'''


def vllm_folder(
    text: str, winners: Sequence[Winner], /, *, module: str, problem: str
) -> dict[str, str]:
    """Return the files of the package.

    Args:
        text: Of the Python file, which is a module of the package.
        winners: Of one task.
        module: Name of the package.
        problem: Not used.

    Raises:
        InvalidArgumentError: the kernels are for the CPU.
    """
    del problem
    check_gpu(winners, "vLLM")
    task = plain_text(winners[0].record.task.name)
    package = package_name(module)
    return {
        "pyproject.toml": _PROJECT.format(name=module, package=package, task=task),
        f"{module}/__init__.py": _MODULE.format(name=module, task=task),
        f"{module}/kernels.py": text,
    }
