"""An installable project that binds the C++ library to Python, without torch."""

from collections.abc import Sequence
from typing import Final

from kernel_foundry.domain.admission import TensorRole
from kernel_foundry.sdk.export.c_text import c_string
from kernel_foundry.sdk.export.call_sizes import CallSizes
from kernel_foundry.sdk.export.cpp_folder import (
    braces,
    evidence_files,
    has_prepare,
    library_files,
    shape_text,
    template,
)
from kernel_foundry.sdk.export.python_text import package_name, plain_text
from kernel_foundry.sdk.export.winner import Winner

_CODES: Final = {
    "float64": "<f8", "float32": "<f4", "float16": "<f2", "int64": "<i8", "int32": "<i4",
    "int16": "<i2", "int8": "|i1", "uint64": "<u8", "uint32": "<u4", "uint16": "<u2",
    "uint8": "|u1", "bool": "|b1",
}  # fmt: skip
"""Of `__cuda_array_interface__`, version 3."""

_PROJECT: Final = """\
[build-system]
requires = ["scikit-build-core>=0.10", "pybind11>=2.13"]
build-backend = "scikit_build_core.build"

[project]
name = "{package}"
version = "1.0.0"
description = "CUDA kernels for {task}, found by Kernel Foundry"
requires-python = ">=3.9"

[tool.scikit-build]
wheel.packages = ["src/{name}"]
"""
_CMAKE: Final = """\
cmake_minimum_required(VERSION 3.18)
project({name} LANGUAGES CXX)

set(PYBIND11_FINDPYTHON ON)
find_package(pybind11 CONFIG REQUIRED)
pybind11_add_module(_{name} binding.cpp {name}.cpp)
target_compile_features(_{name} PRIVATE cxx_std_17)
target_link_libraries(_{name} PRIVATE ${{CMAKE_DL_LIBS}})
install(TARGETS _{name} DESTINATION {name})
"""
_MODULE: Final = '''\
"""Kernels for {task} on NVIDIA GPUs, for arrays of any library.

Arrays are torch tensors, or what has `__cuda_array_interface__` (CuPy, Numba). They are contiguous,
begin at a multiple of 256 bytes, and do not overlap:

{shapes}

    kernels = Kernels(device=0)
    kernels.launch({call}, stream=stream)

`stream` is the address of a CUDA stream, such as `torch.cuda.current_stream().cuda_stream`. Open
the kernels once for each stream that runs them.
"""

from typing import Any

from {name}._{name} import Kernels as _Kernels
from {name}._{name} import has_prepare

__all__ = ["Kernels", "has_prepare"]


class Kernels:
    """The kernels on one GPU.

    Args:
        device: Its number, as CUDA counts.

    Raises:
        RuntimeError: there is no driver, or the GPU is of another architecture.
    """

    def __init__(self, device: int = 0) -> None:
        self._kernels = _Kernels(device)

    def prepare(self, *, stream: int = 0, **given: Any) -> None:
        """Lay weights out: before the first launch, and whenever their values change.

        It is needed where `has_prepare` is true. Weights are given by their names, and so are the
        sizes that no weight has.
        """
        self._kernels.prepare(given, stream)

    def launch(self, *, stream: int = 0, **arrays: Any) -> None:
        """Queue a call; arrays are given by their names, and outputs are written.

        Raises:
            ValueError: an array is missing, or has another shape or type.
            RuntimeError: sizes were not judged, or the driver refuses the launch.
        """
        self._kernels.launch(arrays, stream)
'''


def pybind_folder(
    _text: str, winners: Sequence[Winner], /, *, module: str, problem: str
) -> dict[str, str]:
    """Return the files of the project; arguments and errors as `cpp_folder`."""
    del problem
    sizes = CallSizes(winners)
    library = library_files(winners, sizes, module)
    tensors = winners[0].workloads[0].tensors
    task = plain_text(winners[0].record.task.name)
    return {
        **library,
        "binding.cpp": _binding(winners, sizes, module),
        "pyproject.toml": _PROJECT.format(name=module, package=package_name(module), task=task),
        "CMakeLists.txt": _CMAKE.format(name=module),
        f"src/{module}/__init__.py": _MODULE.format(
            name=module,
            task=task,
            shapes="\n".join(
                f"* {t.name} ({t.role.value}): {shape_text(sizes, t)}" for t in tensors
            ),
            call=", ".join(f"{tensor.name}={tensor.name}" for tensor in tensors),
        ),
        **evidence_files(winners),
    }


def _binding(winners: Sequence[Winner], sizes: CallSizes, name: str) -> str:
    tensors = winners[0].workloads[0].tensors
    rows = []
    for tensor in tensors:
        code = _CODES.get(tensor.dtype)
        is_weight = tensor.role in (TensorRole.PARAMETER, TensorRole.BUFFER)
        shape = braces(
            braces((str(number.fixed), str(number.size))) for number in sizes.shapes[tensor.name]
        )
        values = (
            c_string(tensor.name),
            c_string(tensor.dtype),
            c_string(code) if code else "nullptr",
            str(is_weight).lower(),
            shape,
        )
        rows.append(f"    {braces(values)},")
    return template(
        "binding.cpp",
        NAME=name,
        ARRAYS="\n".join(rows),
        SIZES=", ".join(
            braces((c_string(size), str(sizes.is_real(size)).lower())) for size in sizes.names
        ),
        PREPARES=str(int(has_prepare(winners))),
        SLOTS=str(len(tensors) + len(sizes.names)),
    )
