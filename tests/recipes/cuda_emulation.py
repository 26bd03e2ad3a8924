"""Runs bound CUDA candidates on the host: their text compiled as C++ with `cuda_emulation.hpp`."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import torch

from generator_svc.recipes.cuda.matmul_text import ASYNC_COPY
from kernel_foundry import plan as plans
from tests.recipes.cuda_candidates import BoundCandidate

HEADER_FOLDER = Path(__file__).parent

COMPILER = shutil.which("g++")

_HOST_ASYNC_COPY = """\
static inline void copy_async(float* to, const float* from, bool inside) {
  emulation::current->open.push_back({to, from, 4, inside});
}
static inline void copy_quad_async(float* to, const float* from, bool inside) {
  emulation::current->open.push_back({to, from, 16, inside});
}
static inline void end_of_copies() {
  emulation::current->copies.push_back(std::move(emulation::current->open));
  emulation::current->open.clear();
}
static inline void wait_for_copies() { emulation::finish_copies(STAGES - 2); }
"""
"""Copies that happen when they are waited for, as late as the device may do them."""

_DYNAMIC_SHARED = re.compile(r"extern\s+__shared__\s+(\w+)\s+(\w+)\[\];")


def run_emulated(candidate: BoundCandidate, folder: Path) -> torch.Tensor:
    """Return the output of `candidate`.

    Args:
        candidate: Bound to its tensors.
        folder: For files; empty.

    Raises:
        AssertionError: it does not compile, reads or writes beyond a tensor, or deadlocks.
    """
    source = folder / "candidate.cpp"
    source.write_text(_program(candidate))
    for name, value in candidate.tensors.items():
        value.numpy().tofile(folder / f"{name}.bin")
    assert COMPILER is not None
    flags = ["-std=c++17", "-O1", "-w", "-fsanitize=address,alignment", f"-I{HEADER_FOLDER}"]
    _run(
        [COMPILER, *flags, "-fno-sanitize-recover=all", "candidate.cpp", "-o", "candidate"], folder
    )
    _run(["./candidate"], folder)
    out = candidate.tensors["out"]
    return torch.from_numpy(np.fromfile(folder / "out.bin", dtype=np.float32)).view(out.shape)


def _run(command: list[str], folder: Path) -> None:
    # Fibers change stacks under the sanitizer's feet: what it knows of stacks is switched off.
    options = "detect_stack_use_after_return=0:detect_leaks=0"
    result = subprocess.run(
        command,
        cwd=folder,
        env={"ASAN_OPTIONS": options, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr[:4000]


def _program(candidate: BoundCandidate) -> str:
    code = candidate.unit("").replace(ASYNC_COPY, _HOST_ASYNC_COPY)
    code = _DYNAMIC_SHARED.sub(r"\1* const \2 = reinterpret_cast<\1*>(emulation::shared);", code)
    lines = []
    for index, buffer in enumerate(candidate.sequence.buffers):
        count = buffer.size_bytes // 4
        file = f', "{buffer.name}.bin"' if buffer.name in candidate.tensors else ""
        lines.append(f"emulation::Buffer<float> buffer{index}({count}{file});")
    for step in candidate.sequence.steps:
        assert isinstance(step, plans.Launch)
        arguments = ", ".join(map(_argument, step.arguments))
        grid, block = (f"{{{', '.join(map(str, size))}}}" for size in (step.grid, step.block))
        lines.append(
            f"emulation::launch({grid}, {block}, {step.shared_bytes}, "
            f"[&] {{ {step.kernel}({arguments}); }});"
        )
    (out,) = [i for i, b in enumerate(candidate.sequence.buffers) if b.name == "out"]
    lines.append(f'buffer{out}.save("out.bin");')
    body = "".join(f"  {line}\n" for line in lines)
    return f'#include "cuda_emulation.hpp"\n{code}\nint main() {{\n{body}}}\n'


def _argument(argument: plans.Argument) -> str:
    if isinstance(argument, plans.BufferArgument):
        return f"buffer{argument.index}.at({argument.offset_bytes})"
    assert isinstance(argument, plans.ScalarArgument)
    return repr(argument.value)
