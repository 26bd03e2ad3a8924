"""A candidate is run again from a folder: on a driver that needs no GPU, and on real GPUs."""

import dataclasses
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

import kernel_foundry_native as native
from evaluator_svc.builder.read_candidate import read_candidate
from evaluator_svc.languages import Toolchain
from evaluator_svc.messages.builder import ReadCandidateRequest
from evaluator_svc.messages.draw import Draw, TensorSlot
from evaluator_svc.messages.locked import WorkloadNames
from evaluator_svc.messages.runner import LoadRequest
from evaluator_svc.pipeline.profile.counted_kernels import counted_kernels
from evaluator_svc.tools import SanitizerTool, profile, rerun_command, sanitize
from evaluator_svc.tools.rerun import SeparateMemory
from evaluator_svc.tools.rerun_folder import RerunInput, read, write
from kernel_foundry.domain.admission import NamedTensor, TensorRole
from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.plan.candidate_text import split
from kernel_foundry.plan.sequence import BufferSpec, LaunchSequence
from tests.domain_values import H200
from tests.native.fake_cuda_build import fake_driver_environment

COUNT = 1000
BYTES = 4 * COUNT
SOURCE = """```cuda
extern "C" __global__ void scale(const float* in, float* out, float factor, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = in[i] * factor;
}
extern "C" __global__ void illegal(const float* in, float* out) {
  out[1 << 28] = in[0];
}
extern "C" __global__ void racy(const float* in, float* out) {
  __shared__ float tile[128];
  tile[threadIdx.x] = in[threadIdx.x];
  out[threadIdx.x] = tile[127 - threadIdx.x];
}
```
"""
OF_THE_DEVICE = ""
SCALE = "scale[8, 128](x, out, 2.0, 1000)"


def device() -> DeviceSpec:
    return H200


def replay_input(
    body: str, *, handles: tuple[str, ...] = (), architecture: str = "sm_90"
) -> RerunInput:
    """A built candidate on one tensor of 1000 numbers; skips without NVRTC."""
    module = native.device_kind("cuda")
    try:
        compiler = module.open_compiler(0, architecture)
    except native.DriverUnavailableError as error:
        pytest.skip(f"NVRTC: {error}")
    tensors = (("x", TensorRole.INPUT), ("out", TensorRole.OUTPUT))
    names = WorkloadNames(
        workload="default",
        tensors=tuple(
            NamedTensor(name=name, role=role, dtype="float32", shape=(COUNT,), path=name)
            for name, role in tensors
        ),
        scalars=(),
    )
    spec = device()
    text = f"{SOURCE}\n```python\ndef launch(x, out):\n    {body}\n```\n"
    request = ReadCandidateRequest(
        source=split(text), configuration=(), device=spec, workloads=(names,)
    )
    folders = tuple(f"-I{folder}" for folder in native.cuda_include_paths())
    parsed = read_candidate(
        request, Toolchain(prelude=native.prelude("cuda"), options_of=lambda _: folders)
    )
    (unit,) = parsed.units
    built = compiler.compile(
        source=unit.source, options=list(unit.options), kernels=list(unit.kernels)
    )
    load = LoadRequest(
        source=request.source,
        configuration=parsed.configuration,
        device=spec,
        workloads=(names,),
        kernels=(unit.kernels,),
        unit_of_workload=(0,),
    )
    slots = tuple(
        TensorSlot(
            name=name,
            role=role.value,
            dtype="float32",
            shape=(COUNT,),
            size_bytes=BYTES,
            offsets=(4096 * position,),
        )
        for position, (name, role) in enumerate(tensors)
    )
    draw = Draw(
        draw=1, workload="default", size_bytes=8192, slots=slots, seed_count=3, handles=handles
    )
    return RerunInput(load=load, codes=(built.code,), draw=draw)


@pytest.fixture(scope="module")
def fake_environment(fake_driver: Path) -> dict[str, str]:
    """Variables that put the driver without a GPU in place."""
    return fake_driver_environment(fake_driver)


def replayed(folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        rerun_command(folder),
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


def test_a_folder_holds_one_seed_of_what_was_put_there(tmp_path: Path) -> None:
    put = replay_input(SCALE, handles=("00", "11", "22"))
    write(tmp_path, put)

    found = read(tmp_path)

    assert (found.load, found.codes) == (put.load, put.codes)
    assert (found.draw.seed_count, found.draw.handles) == (1, ("00",))


def test_a_candidate_runs_again(tmp_path: Path, fake_environment: dict[str, str]) -> None:
    write(tmp_path, replay_input(SCALE))

    done = replayed(tmp_path, fake_environment)

    assert (done.returncode, done.stderr) == (0, "")


def test_buffers_of_the_plan_lie_apart_and_nothing_writes_them() -> None:
    """So that a tool sees what is read beyond them, or before it is written."""
    allocated: list[int] = []

    class _Device:
        unit_bytes = 2 << 20
        is_host_memory = False

        def allocate(self, size_bytes: int) -> SimpleNamespace:
            allocated.append(size_bytes)
            return SimpleNamespace(address=4096 * len(allocated))

        def fill_all(self, ranges: tuple[object, ...]) -> None:
            assert ranges == ()

    buffers = tuple(
        BufferSpec(kind=kind, name=name, dtype="int8", shape=(size,), size_bytes=size)
        for kind, name, size in (
            ("scratch", "first", 100), ("scratch", "empty", 0), ("scratch", "second", 8),
            ("tensor", "x", 64),
        )
    )  # fmt: skip
    sequence = LaunchSequence(buffers=buffers, steps=())
    memory = SeparateMemory(_Device(), sequence, seed_count=1)

    assert allocated == [100, 1, 8]
    assert memory.addresses({"x": 7}, 0) == [4096, 8192, 12288, 7]


def test_a_fault_is_an_exit_status(tmp_path: Path, fake_environment: dict[str, str]) -> None:
    write(tmp_path, replay_input("illegal[1, 32](x, out)"))

    done = replayed(tmp_path, fake_environment)

    assert done.returncode == 3
    assert done.stderr


def test_native_code_is_never_run_again(tmp_path: Path) -> None:
    write(tmp_path, replay_input(SCALE))
    load = tmp_path / "load.json"
    load.write_text(load.read_text().replace('"cuda:0"', '"sycl:0"'))

    assert replayed(tmp_path, dict(os.environ)).returncode == 2


def test_library_calls_of_the_plan_run_again(tmp_path: Path) -> None:
    """For the profiler; on a device whose memory is the host's, where kernels do nothing."""
    put = replay_input("y = ops.matmul(x, x)\n    scale[1, 32](y, out, 2.0, 1)")
    on_host = dataclasses.replace(
        put.load, device=dataclasses.replace(put.load.device, id="null:0"), library_ops=("matmul",)
    )
    compiler = native.device_kind("null").open_compiler(0, "")
    built = compiler.compile(source="", options=[], kernels=["scale"])
    write(tmp_path, dataclasses.replace(put, load=on_host, codes=(built.code,)))

    done = replayed(tmp_path, dict(os.environ))

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("body", "check", "kind", "line"),
    [
        ("illegal[1, 32](x, out)", SanitizerTool.MEMORY, FindingKind.ILLEGAL_ACCESS, 6),
        ("racy[1, 128](x, out)", SanitizerTool.RACES, FindingKind.DATA_RACE, 10),
        (SCALE, SanitizerTool.MEMORY, FindingKind.TOOL, None),
    ],
)
def test_the_sanitizer_names_the_line(
    tmp_path: Path, body: str, check: SanitizerTool, kind: FindingKind, line: int | None
) -> None:
    write(tmp_path, replay_input(body, architecture=OF_THE_DEVICE))

    found = sanitize(
        rerun_command(tmp_path), dict(os.environ), check=check, tensor_bytes={"out": BYTES}
    )

    if "not installed" in found[0].message:
        pytest.skip(found[0].message)
    assert (found[0].kind, found[0].line) == (kind, line)


@pytest.mark.gpu
def test_the_profiler_measures_the_kernel(tmp_path: Path) -> None:
    write(tmp_path, replay_input(SCALE, architecture=OF_THE_DEVICE))

    found = profile(rerun_command(tmp_path, is_profiled=True), dict(os.environ), seconds=60)

    if found.is_closed:
        pytest.skip(found.reason)
    (kernel,) = counted_kernels(found.launches, ["scale"], ())
    assert 500 < kernel.time_ns < 100_000
    assert kernel.occupancy is not None
    assert 0 < kernel.occupancy <= 1
    assert {line.file for line in found.lines} == {"candidate.cu"}
    assert {line.line for line in found.lines} <= {1, 2, 3, 4}
