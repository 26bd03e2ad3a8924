"""The file for KernelBench: a class `ModelNew` with the reference's constructor."""

from collections.abc import Sequence
from typing import Final

from kernel_foundry.sdk.export.torch_file import torch_file
from kernel_foundry.sdk.export.winner import Winner

_USAGE: Final = """\
As KernelBench takes it: `ModelNew` has the constructor and the weights of the reference's `Model`.

    runs/RUN/level_LEVEL_problem_PROBLEM_sample_0_kernel.py    # is where this file goes"""
_OTHERWISE: Final = """\
Every other call raises
NoKernelError, which says why; the reference never runs in place of a kernel."""


def kernelbench_file(winners: Sequence[Winner], module: str) -> str:
    """Return the text of the file; arguments and errors as `torch_file`."""
    return torch_file(
        winners, module, usage=_USAGE, otherwise=_OTHERWISE, more_parts=("model_new",)
    )
