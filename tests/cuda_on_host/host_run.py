"""Binds CUDA candidates and runs them on the host: kernels by `cuda_on_host.hpp`, else by torch.

For small sizes, to check where there is no GPU what a candidate computes, and that it stays within
its tensors. Buffers are files that torch and the compiled candidate both map. It says
nothing of speed, and takes neither inline assembly nor types of sixteen bits.
"""

from __future__ import annotations

import atexit
import functools
import itertools
import math
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

import kernel_foundry_native as native
from kernel_foundry import plan as plans

COMPILER = shutil.which("g++")

_HERE = Path(__file__).parent
_FLAGS = (
    *("-std=c++17", "-O1", "-w", "-fno-strict-aliasing"),
    *("-fsanitize=address,alignment", "-fno-sanitize-recover=all"),
)
_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    # Fibers change stacks under the sanitizer's feet: what it knows of stacks is switched off.
    "ASAN_OPTIONS": "detect_stack_use_after_return=0:detect_leaks=0",
}
_DYNAMIC_SHARED = re.compile(
    r"extern\s+__shared__\s+(?:__align__\(\d+\)\s+)?(\w+)\s+(\w+)\s*\[\s*\]\s*;"
)
_C_TYPES = {
    "float32": "float",
    "float64": "double",
    "int32": "int",
    "int64": "long long",
    "uint32": "unsigned",
    "uint64": "unsigned long long",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundCandidate:
    """A candidate for one workload in one configuration."""

    device_code: str
    macros: Mapping[str, plans.TuneValue]
    kernels: tuple[str, ...]
    """All that are declared, launched or not."""
    sequence: plans.LaunchSequence
    tensors: Mapping[str, torch.Tensor] = field(default_factory=dict)
    """By name, on the CPU. Those that it fills need not be among them."""

    def unit(self, prelude: str) -> str:
        """Return the text to compile."""
        return plans.translation_unit(self.device_code, self.macros, prelude, "cuda")


def bind(
    device_code: str,
    plan: plans.Plan,
    *,
    names: plans.NameTable,
    configuration: Mapping[str, plans.TuneValue],
    device: plans.DeviceLimits,
    library_ops: Iterable[str] = (),
    tensors: Mapping[str, torch.Tensor] | None = None,
) -> BoundCandidate:
    """Bind as the evaluator does."""
    macros = {**configuration, **plans.constants(plan, names, configuration, device)}
    signatures = plans.kernels(device_code, "cuda", macros)
    sequence = plans.bind(
        plan,
        signatures,
        names=names,
        configuration=configuration,
        device=device,
        language="cuda",
        library_ops=library_ops,
    )
    return BoundCandidate(
        device_code=device_code,
        macros=macros,
        kernels=tuple(signature.name for signature in signatures),
        sequence=sequence,
        tensors=tensors or {},
    )


def run_on_host(candidate: BoundCandidate, folder: Path) -> dict[str, torch.Tensor]:
    """Run `prepare` and the steps; return all tensors of the name table as they are then.

    Args:
        candidate: Bound to its tensors.
        folder: For the compiled code and the buffers, which stay mapped; empty.

    Raises:
        AssertionError: It does not compile, reads or writes beyond a tensor, or deadlocks.
    """
    sequence = candidate.sequence
    parts = _parts((*sequence.prepare, *sequence.steps))
    _compile(_program(candidate, parts), folder)
    buffers = [
        _buffer(folder / f"{number}.bin", spec, candidate.tensors)
        for number, spec in enumerate(sequence.buffers)
    ]
    for number, part in enumerate(parts):
        if isinstance(part, plans.LibraryCall):
            buffers[part.output].copy_(_library_call(part, buffers))
        else:
            _run([str(folder / "candidate"), str(number)], folder)
    return {
        spec.name: buffer
        for spec, buffer in zip(sequence.buffers, buffers, strict=True)
        if spec.kind == "tensor"
    }


_Part = plans.LibraryCall | tuple[plans.Launch | plans.Clear, ...]


def _parts(steps: Iterable[plans.Step]) -> list[_Part]:
    """Return library calls, and what runs between them."""
    parts: list[_Part] = []
    for is_call, group in itertools.groupby(steps, lambda s: isinstance(s, plans.LibraryCall)):
        found = tuple(group)
        parts.extend(found if is_call else (found,))  # type: ignore[arg-type]
    return parts


def _buffer(
    path: Path, spec: plans.BufferSpec, tensors: Mapping[str, torch.Tensor]
) -> torch.Tensor:
    # Memory that nobody has set holds no number.
    path.write_bytes(b"\xff" * spec.size_bytes)
    dtype = getattr(torch, spec.dtype)
    mapped = torch.from_file(str(path), shared=True, size=math.prod(spec.shape), dtype=dtype)
    buffer = mapped.view(spec.shape)
    if spec.name in tensors:
        buffer.copy_(tensors[spec.name])
    return buffer


def _library_call(call: plans.LibraryCall, buffers: list[torch.Tensor]) -> torch.Tensor:
    def value(operand: plans.Operand) -> Any:
        return buffers[operand.index] if isinstance(operand, plans.TensorOperand) else operand

    op = plans.LIBRARY_OPS[call.op]
    module = {"torch": torch, "torch.nn.functional": torch.nn.functional}[op.module]
    result: torch.Tensor = getattr(module, op.name)(
        *map(value, call.arguments), **{name: value(operand) for name, operand in call.keywords}
    )
    return result


@functools.cache
def _runtime() -> Path:
    """Return the folder of what all candidates include and are linked with, compiled once."""
    kept = tempfile.TemporaryDirectory(prefix="cuda-on-host-")
    atexit.register(kept.cleanup)
    folder, header = Path(kept.name), _HERE / "cuda_on_host.hpp"
    _run([_compiler(), *_FLAGS, "-c", str(_HERE / "cuda_on_host.cpp")], folder)
    precompiled = f"{header.name}.gch"  # found before the header itself, and half of a compile
    _run([_compiler(), *_FLAGS, "-x", "c++-header", str(header), "-o", precompiled], folder)
    return folder


def _compile(program: str, folder: Path) -> None:
    (folder / "candidate.cpp").write_text(program, "utf-8")
    sources = ("candidate.cpp", str(_runtime() / "cuda_on_host.o"))
    folders = (f"-I{_runtime()}", f"-I{_HERE}", f"-I{native.blocks_include_path('cuda')}")
    _run([_compiler(), *_FLAGS, *folders, *sources, "-o", "candidate"], folder)


def _compiler() -> str:
    assert COMPILER is not None
    return COMPILER


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(
        command, cwd=folder, env=_ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[:4000]


def _program(candidate: BoundCandidate, parts: list[_Part]) -> str:
    code = _DYNAMIC_SHARED.sub(
        r"\1* const \2 = reinterpret_cast<\1*>(host::dynamic_shared);", candidate.unit("")
    )
    launches = [step for part in parts if isinstance(part, tuple) for step in part]
    if any(isinstance(step, plans.Launch) and step.cooperative for step in launches):
        assert "__shared__" not in code, "static shared memory would be one for all blocks"
    lines = [
        f'host::Buffer buffer{number}("{number}.bin");'
        for number in range(len(candidate.sequence.buffers))
    ]
    lines.append("const int part = std::atoi(arguments[1]);")
    for number, part in enumerate(parts):
        if isinstance(part, tuple):
            lines += [f"if (part == {number}) {{", *map(_statement, part), "}"]
    body = "".join(f"  {line}\n" for line in lines)
    includes = '#include "cuda_on_host.hpp"\n#include <cstdlib>\n'
    return f"{includes}{code}\nint main(int, char** arguments) {{\n{body}}}\n"


def _statement(step: plans.Launch | plans.Clear) -> str:
    if isinstance(step, plans.Clear):
        return f"buffer{step.buffer}.clear();"
    grid, block = (f"{{{', '.join(map(str, extent))}}}" for extent in (step.grid, step.block))
    arguments = ", ".join(map(_argument, step.arguments))
    return (
        f"host::launch({grid}, {block}, {step.shared_bytes}, {int(step.cooperative)}, "
        f"[&] {{ {step.kernel}({arguments}); }});"
    )


def _argument(argument: plans.Argument) -> str:
    if isinstance(argument, plans.BufferArgument):
        return f"buffer{argument.index}.at()"
    assert isinstance(argument, plans.ScalarArgument)
    return f"({_C_TYPES[argument.ctype]}){argument.value!r}"
