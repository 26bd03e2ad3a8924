"""Runs a bound CUDA plan on the host: kernels by `cuda_on_host.hpp`, library calls by torch.

For small workloads, to check a candidate's numbers where there is no GPU. Knows nothing of how
fast anything is.
"""

from __future__ import annotations

import ctypes
import pathlib
import re
import subprocess
from collections.abc import Mapping
from typing import Any

import torch

from kernel_foundry.plan import (
    LIBRARY_OPS,
    Argument,
    BufferArgument,
    BufferSpec,
    Clear,
    Launch,
    LaunchSequence,
    LibraryCall,
    Operand,
    ScalarArgument,
    TensorOperand,
)

_HERE = pathlib.Path(__file__).parent
_DYNAMIC_SHARED = re.compile(r"extern\s+__shared__[^;]*?(\w+)\s*\[\s*\]\s*;")
_C_TYPES = {"float32": "float", "float64": "double", "int32": "int", "int64": "long long"}


def run_on_host(
    sequence: LaunchSequence, unit: str, tensors: Mapping[str, torch.Tensor], folder: pathlib.Path
) -> None:
    """Run `prepare` and the steps; outputs among `tensors` are filled.

    Args:
        sequence: The bound plan.
        unit: The text that a CUDA compiler would get, without prelude.
        tensors: The name table's tensors by name, contiguous, on the CPU.
        folder: For the compiled code.
    """
    steps = (*sequence.prepare, *sequence.steps)
    library = _compiled(unit, steps, folder)
    buffers = [_buffer(buffer, tensors) for buffer in sequence.buffers]
    for number, step in enumerate(steps):
        if isinstance(step, Launch):
            addresses = (ctypes.c_void_p * len(buffers))(*(b.data_ptr() for b in buffers))
            getattr(library, f"step_{number}")(addresses)
        elif isinstance(step, Clear):
            buffers[step.buffer].zero_()
        else:
            buffers[step.output].copy_(_library_call(step, buffers))


def _buffer(buffer: BufferSpec, tensors: Mapping[str, torch.Tensor]) -> torch.Tensor:
    if buffer.kind == "tensor":
        return tensors[buffer.name]
    # Memory that nobody has set holds no number.
    return torch.full(buffer.shape, torch.nan, dtype=getattr(torch, buffer.dtype))


def _library_call(call: LibraryCall, buffers: list[torch.Tensor]) -> torch.Tensor:
    def value(operand: Operand) -> Any:
        return buffers[operand.index] if isinstance(operand, TensorOperand) else operand

    op = LIBRARY_OPS[call.op]
    module = {"torch": torch, "torch.nn.functional": torch.nn.functional}[op.module]
    result: torch.Tensor = getattr(module, op.name)(
        *map(value, call.arguments), **{name: value(operand) for name, operand in call.keywords}
    )
    return result


def _compiled(
    unit: str, steps: tuple[Launch | Clear | LibraryCall, ...], folder: pathlib.Path
) -> ctypes.CDLL:
    launches = "\n".join(
        _launch_text(number, step) for number, step in enumerate(steps) if isinstance(step, Launch)
    )
    code = _DYNAMIC_SHARED.sub(r"float* \1 = host::dynamic_shared.data();", unit)
    source = folder / "on_host.cpp"
    source.write_text(f'#include "cuda_on_host.hpp"\n{code}\n{launches}\n', "utf-8")
    library = folder / "on_host.so"
    command = [
        *("g++", "-std=c++17", "-O1", "-w", "-fno-strict-aliasing", "-shared", "-fPIC"),
        "-fno-gnu-unique",  # or the variables of all candidates in this process would be one
        *(f"-I{_HERE}", "-o", str(library), str(source)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(library))


def _launch_text(number: int, launch: Launch) -> str:
    grid, block = (f"{{{', '.join(map(str, extent))}}}" for extent in (launch.grid, launch.block))
    arguments = ", ".join(map(_argument_text, launch.arguments))
    return (
        f'extern "C" void step_{number}(void** buffers) {{\n'
        f"  host::launch({grid}, {block}, {launch.shared_bytes}, {int(launch.cooperative)}, "
        f"[=] {{ {launch.kernel}({arguments}); }});\n}}"
    )


def _argument_text(argument: Argument) -> str:
    if isinstance(argument, BufferArgument):
        return f"host::Address{{buffers[{argument.index}]}}"
    assert isinstance(argument, ScalarArgument)
    return f"({_C_TYPES[argument.ctype]}){argument.value!r}"
