"""A C++ library of a winner's kernels: built here, and run through a driver without a GPU."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from evaluator_svc.judge.reference.task_module import TaskModule
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.task import Size, Workload
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.evidence.record import read_records
from kernel_foundry.sdk.export.cpp_folder import cpp_folder
from kernel_foundry.sdk.export.winner import Winner
from tests.export.unjudged import TASK, unjudged_winner

NAME = "fast_blend"
CALLS = """
import ctypes, sys, array
driver = ctypes.CDLL("libcuda.so.1")
library = ctypes.CDLL(sys.argv[1])
library.fast_blend_error.restype = ctypes.c_char_p
def call(name, *arguments):
    return library[f"fast_blend_{name}"](*arguments) and library.fast_blend_error().decode()
kernels, stream = ctypes.c_void_p(), ctypes.c_void_p()
assert not call("open", 0, ctypes.byref(kernels))
driver.cuStreamCreate(ctypes.byref(stream), 1)
def memory(values):
    space = (ctypes.c_float * (len(values) + 64))()
    address = -(-ctypes.addressof(space) // 256) * 256
    found = (ctypes.c_float * len(values)).from_address(address)
    found[:] = values
    return space, found, address
rows, cols = 5, 80
x, weight, bias, out = (memory([float(i) for i in range(n)]) for n in (400, 160, 2, 400))
slots = (ctypes.c_uint64 * 6)(x[2], weight[2], bias[2], out[2], rows, cols)
print(call("launch", kernels, slots, stream))
assert not call("prepare", kernels, slots, stream)
assert not call("launch", kernels, slots, stream)
driver.cuStreamSynchronize(stream)
print(list(out[1]) == [6.0 * i if i < cols else 0.25 * i for i in range(400)])
slots[4] = 9
print(call("launch", kernels, slots, stream))
slots[4], slots[0] = 5, x[2] + 4
print(call("launch", kernels, slots, stream))
library.fast_blend_close(kernels)
"""


RESULTS = """
import ctypes, pathlib, sys
library, folder, *sizes = sys.argv[1:]
library, driver = ctypes.CDLL(library), ctypes.CDLL("libcuda.so.1")
def memory(count, content=b""):
    space = (ctypes.c_float * (count + 64))()
    address = -(-ctypes.addressof(space) // 256) * 256
    ctypes.memmove(address, content, len(content))
    return space, address
kernels, stream = ctypes.c_void_p(), ctypes.c_void_p()
assert library.fast_blend_open(0, ctypes.byref(kernels)) == 0
driver.cuStreamCreate(ctypes.byref(stream), 1)
given = [pathlib.Path(folder, name).read_bytes() for name in ("x", "weight", "bias")]
tensors = [memory(len(each) // 4, each) for each in given]
tensors.append(memory(len(given[0]) // 4))
slots = (ctypes.c_uint64 * 6)(*(address for _, address in tensors), *map(int, sizes))
for name in ("prepare", "launch"):
    assert library[f"fast_blend_{name}"](kernels, slots, stream) == 0, name
driver.cuStreamSynchronize(stream)
pathlib.Path(folder, "out").write_bytes(ctypes.string_at(tensors[-1][1], len(given[0])))
"""
REFERENCE = TASK.reference.replace(
    "return x * self.factor + self.linear.weight[0]",
    "return torch.cat([6.0 * self.linear.weight[:1], x[1:] * self.factor * self.factor])",
)
"""What the kernels of `CANDIDATE` compute."""


@pytest.fixture(scope="module")
def winner() -> Winner:
    return unjudged_winner()


def folder(winner: Winner) -> dict[str, str]:
    return cpp_folder("", [winner], module=NAME, problem="")


@pytest.mark.slow
def test_the_library_runs_through_the_driver(
    winner: Winner, fake_driver: Path, tmp_path: Path
) -> None:
    for path, text in folder(winner).items():
        Path(tmp_path, path).write_text(text, encoding="utf-8")
    flags = ["-std=c++17", "-O0", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    library = tmp_path / f"lib{NAME}.so"
    subprocess.run(
        ["c++", *flags, "-shared", "-fPIC", f"{NAME}.cpp", "-o", library, "-ldl"],
        cwd=tmp_path,
        check=True,
    )
    subprocess.run(
        ["c++", *flags, f"test_{NAME}.cpp", "-o", "program", library, "-ldl"],
        cwd=tmp_path,
        check=True,
    )
    driver = tmp_path / "libcuda.so.1"

    def shown(*command: str, code: int = 0, **settings: str) -> str:
        found = subprocess.run(
            command,
            env=os.environ | {"LD_LIBRARY_PATH": str(tmp_path)} | settings,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert found.returncode == code, found.stdout + found.stderr
        return found.stdout + found.stderr

    driver.touch()  # found before a driver that may be here, and none itself
    assert "no CUDA driver: " in shown("./program", code=1)
    driver.unlink()
    driver.symlink_to(fake_driver)
    other = shown("./program", code=1, FAKE_CUDA_MAJOR="8")
    assert "kernels are for sm_90, and this GPU is sm_80" in other
    assert shown("./program").startswith("fast_blend runs:")
    said = shown(sys.executable, "-c", CALLS, str(library)).splitlines()
    assert said == [
        "the weights were not prepared for these sizes",
        "True",
        "rows = 9 was not judged, only 3 to 8",
        "x is null, or begins at no multiple of 256 bytes",
    ]


@pytest.mark.slow
def test_the_library_gives_what_the_reference_gives(fake_driver: Path, tmp_path: Path) -> None:
    """On the workloads that were judged, and on sizes between them."""
    task = replace(TASK, reference=REFERENCE)
    for path, text in folder(unjudged_winner(task)).items():
        Path(tmp_path, path).write_text(text, encoding="utf-8")
    library = tmp_path / f"lib{NAME}.so"
    command = ["c++", "-std=c++17", "-O0", "-shared", "-fPIC", f"{NAME}.cpp", "-o", str(library)]
    subprocess.run([*command, "-ldl"], cwd=tmp_path, check=True)
    Path(tmp_path, "libcuda.so.1").symlink_to(fake_driver)
    for rows, cols in ((8, 64), (3, 96), (5, 80)):
        workload = Workload(
            name="called", sizes=(Size(name="rows", value=rows), Size(name="cols", value=cols))
        )
        module = TaskModule(task, workload, torch.device("cpu"))
        (x,) = module.input_values(seed=rows)
        for path, tensor in (("x", x), *module.model.named_parameters()):
            file = tmp_path / path.removeprefix("linear.")
            file.write_bytes(tensor.detach().numpy().tobytes())
        subprocess.run(
            [sys.executable, "-c", RESULTS, str(library), str(tmp_path), str(rows), str(cols)],
            env=os.environ | {"LD_LIBRARY_PATH": str(tmp_path)},
            check=True,
        )
        content = bytearray(tmp_path.joinpath("out").read_bytes())
        found = torch.frombuffer(content, dtype=torch.float32).view(rows, cols)
        with torch.no_grad():
            torch.testing.assert_close(found, module.model(x))
        module.close()


def test_sizes_that_vary_are_members_of_a_call(winner: Winner) -> None:
    header = folder(winner)[f"{NAME}.h"]
    members = [line.strip() for line in header.splitlines() if line.startswith("  ")]
    assert members[:6] == [
        "const float* x; /* input: float32 [rows][cols] */",
        "const float* linear_weight; /* parameter: float32 [2][cols] */",
        "const float* linear_bias; /* parameter: float32 [2] */",
        "float* out; /* output: float32 [rows][cols] */",
        "int64_t rows; /* 3 to 8 */",
        "int64_t cols; /* 64 to 96 */",
    ]


def test_the_evidence_is_beside_the_library(winner: Winner, tmp_path: Path) -> None:
    path = tmp_path / "evidence.json"
    path.write_text(folder(winner)["evidence.json"])
    assert json.loads(path.read_text())["task"]["name"] == "blend"
    assert read_records(path) == (winner.record,)


def test_kernels_for_the_cpu_are_refused(winner: Winner) -> None:
    source = replace(winner.record.source, language=Language.SYCL)
    other = replace(winner, record=replace(winner.record, source=source))
    with pytest.raises(InvalidArgumentError, match="kernels are for the CPU"):
        folder(other)
