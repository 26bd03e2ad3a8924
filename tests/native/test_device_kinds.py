"""Every device kind offers the same, says why it is missing, and matches its stub."""

import ast
import importlib
import importlib.util
import inspect
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import kernel_foundry_native as native

PACKAGE = Path(native.__file__).parent
HOST_KINDS = ["null", pytest.param("sycl", marks=pytest.mark.sycl)]
KINDS = [*HOST_KINDS, pytest.param("cuda", marks=pytest.mark.gpu)]
MODULES = ["_core", "_null", "_cuda", pytest.param("_sycl", marks=pytest.mark.sycl)]

SOFTMAX_ROWS_CUDA = """
extern "C" __global__ void softmax_rows(const float* x, float* out, int rows, int cols) {
  const int lane = threadIdx.x % 32, row = blockIdx.x * 4 + threadIdx.x / 32;
  if (row >= rows || lane != 0) return;
  const float* in = x + row * cols;
  float top = in[0], sum = 0;
  for (int i = 0; i < cols; ++i) top = fmaxf(top, in[i]);
  for (int i = 0; i < cols; ++i) sum += expf(in[i] - top);
  for (int i = 0; i < cols; ++i) out[row * cols + i] = expf(in[i] - top) / sum;
}
"""


def stub_names(stub: Path) -> dict[str, set[str]]:
    """Return the public names of a stub, classes with their public members."""
    names: dict[str, set[str]] = {}
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        match node:
            case ast.ClassDef():
                members = {m.name for m in node.body if isinstance(m, ast.FunctionDef)}
                names[node.name] = {m for m in members if not m.startswith("_")}
            case ast.FunctionDef():
                names[node.name] = set()
            case ast.AnnAssign(target=ast.Name() as target):
                names[target.id] = set()
            case ast.ImportFrom(module=module) if module and module.startswith(PACKAGE.name):
                source = stub_names(PACKAGE / (module.rpartition(".")[2] + ".pyi"))
                # `import X as X` is what a stub exports again.
                again = [alias.name for alias in node.names if alias.asname == alias.name]
                names |= {name: source[name] for name in again}
    return names


def module_names(module: ModuleType) -> dict[str, set[str]]:
    """Return the same of a loaded module."""
    return {
        name: {m for m in vars(value) if not m.startswith("_")} if inspect.isclass(value) else set()
        for name, value in vars(module).items()
        if not name.startswith("_")
    }


@pytest.mark.parametrize("name", MODULES)
def test_stubs_name_what_the_modules_hold(name: str) -> None:
    module = importlib.import_module(f"kernel_foundry_native.{name}")
    assert stub_names(PACKAGE / f"{name}.pyi") == module_names(module)


@pytest.mark.parametrize("name", MODULES)
def test_stubs_name_the_arguments(name: str) -> None:
    module = importlib.import_module(f"kernel_foundry_native.{name}")
    for node in ast.parse((PACKAGE / f"{name}.pyi").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            documented = (getattr(module, node.name).__doc__ or "").split("\n", 1)[0]
            for argument in (*node.args.args, *node.args.kwonlyargs):
                assert f"{argument.arg}:" in documented, (node.name, documented)


@pytest.mark.parametrize("kind", KINDS)
def test_a_device_runs_from_source_to_measurement(kind: str, softmax_source: str) -> None:
    module = native.device_kind(kind)
    assert module.device_count() >= 1
    device = module.open_device()
    compiler = module.open_compiler()
    assert compiler.architecture == device.architecture
    assert compiler.compiler_version
    source = SOFTMAX_ROWS_CUDA if kind == "cuda" else softmax_source
    built = compiler.compile(source=source, options=[], kernels=["softmax_rows"])
    program = device.load(code=built.code, kernels=["softmax_rows"])
    assert program.kernel_names == ["softmax_rows"]
    x = np.ones((8, 100), dtype=np.float32)
    given, out = device.allocate(x.nbytes), device.allocate(x.nbytes)
    device.copy(given.address, x.ctypes.data, x.nbytes)
    assert out.address % 256 == 0
    sequence = module.LaunchSequence(device)
    sequence.launch(
        program=program, kernel="softmax_rows", grid=(2, 1, 1), block=(128, 1, 1), dimensions=1,
        arguments=[
            module.buffer_argument(0), module.buffer_argument(1),
            module.scalar_argument("int32", 8), module.scalar_argument("int32", 100),
        ],
    )  # fmt: skip
    sequence.bind(0, [given.address, out.address])
    sequence.run(0)
    options = module.MeasureOptions(
        warmup_calls=1, min_samples=5, max_samples=5, max_seconds=5.0, target_half_width=0.01,
        set_count=1, is_cold=True,
    )  # fmt: skip
    found = sequence.measure(
        options, flush_bytes=1 << 20, outputs=[(1, x.nbytes)], keep_into=[[out.address]]
    )
    assert len(found.samples_ns) == 5
    assert min(found.samples_ns) > 0
    compiler.release()
    device.release()


@pytest.mark.parametrize("kind", KINDS)
def test_facts_of_a_device(kind: str) -> None:
    device = native.device_kind(kind).open_device()
    for text in ("name", "vendor", "architecture", "driver_version"):
        assert getattr(device, text), text
    for number in ("compute_units", "max_block", "shared_bytes", "memory_bytes", "cache_bytes"):
        assert getattr(device, number) > 0, number
    assert device.sub_group_sizes
    is_host = kind != "cuda"
    assert (device.is_host_memory, not device.times_by_events) == (is_host, is_host)
    assert (device.stream == 0) == is_host
    device.release()


@pytest.mark.parametrize("kind", HOST_KINDS)
def test_a_compiler_builds_for_its_own_architecture_only(kind: str) -> None:
    with pytest.raises(ValueError, match="sm_90"):
        native.device_kind(kind).open_compiler(0, "sm_90")


@pytest.mark.parametrize("kind", HOST_KINDS)
def test_memory_of_the_host_is_shared_by_descriptor_only(kind: str) -> None:
    device = native.device_kind(kind).open_device()
    with pytest.raises(native.DriverError, match="by descriptor"):
        device.create_shared(16)
    with pytest.raises(native.DriverError, match="by descriptor"):
        device.open_shared(b"handle", 16)
    device.release()


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_are_compared_on_the_device(kind: str) -> None:
    device = native.device_kind(kind).open_device()
    expected = np.arange(100, dtype=np.float32)
    actual = expected.copy()
    actual[7] += 1
    buffers = [device.allocate(400) for _ in range(2)]
    a, e = (buffer.address for buffer in buffers)
    device.copy(a, actual.ctypes.data, 400)
    device.copy(e, expected.ctypes.data, 400)
    found = device.compare(actual=a, expected=e, dtype="float32", count=100, rtol=1e-3, atol=1e-3)
    assert (found.mismatch_count, found.first_mismatch) == (1, 7)
    assert not device.same_bytes(a, e, 400)
    device.copy(a, e, 400)
    assert device.same_bytes(a, e, 400)
    buffers.clear()
    device.release()


@pytest.mark.parametrize("kind", KINDS)
def test_memory_that_is_not_to_be_had_is_an_error(kind: str) -> None:
    device = native.device_kind(kind).open_device()
    with pytest.raises(native.OutOfMemoryError, match="allocate"):
        device.allocate(1 << 60)
    device.release()


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_device_is_said(kind: str) -> None:
    with pytest.raises(native.DriverUnavailableError):
        native.device_kind(kind).open_device(99)


@pytest.mark.parametrize("kind", KINDS)
def test_object_code_of_another_kind_is_refused(kind: str) -> None:
    device = native.device_kind(kind).open_device()
    with pytest.raises(native.LoadError):
        device.load(code=b"nonsense", kernels=["k"])
    device.release()


def test_an_unknown_kind_is_a_callers_mistake() -> None:
    with pytest.raises(ValueError, match="metal"):
        native.device_kind("metal")


def run_child(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python code in a process of its own."""
    import os

    return subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_build_without_sycl_says_so() -> None:
    child = run_child(
        """
import sys
sys.modules["kernel_foundry_native._sycl"] = None
import kernel_foundry_native as native
try:
    native.device_kind("sycl")
except native.DriverUnavailableError as error:
    print(error)
"""
    )
    assert "kernel-foundry[sycl]" in child.stdout, child.stderr


def test_importing_the_package_loads_no_driver() -> None:
    child = run_child("import sys, kernel_foundry_native; print(*sys.modules)")
    assert "kernel_foundry_native._" not in child.stdout


@pytest.mark.sycl
def test_a_missing_opencl_runtime_is_no_device() -> None:
    child = run_child(
        "import kernel_foundry_native as n; print(n.device_kind('sycl').device_count())",
        OCL_ICD_FILENAMES="/nonexistent.so",
    )
    assert child.stdout.strip() == "0", child.stderr


def errors() -> list[type[Any]]:
    return [getattr(native, name) for name in native.__all__ if name.endswith("Error")]


def test_every_error_has_the_one_base() -> None:
    assert len(errors()) == 7
    assert all(issubclass(error, native.NativeError) for error in errors())
