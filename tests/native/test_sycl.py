"""Real SYCL kernels: built here, loaded there, right results, clean exits."""

import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import kernel_foundry_native as native
from kernel_foundry_native._core import POISON_BYTE
from tests.native.conftest import sycl_source

pytestmark = [pytest.mark.sycl, pytest.mark.slow]

SPIRV_MAGIC = 0x07230203

KERNEL_1D = 'extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))\n'
KERNEL_2D = KERNEL_1D.replace("<1>", "<2>")


def run_once(
    sycl: ModuleType,
    device: Any,
    text: str,
    kernel: str,
    *,
    buffers: Sequence[np.ndarray[Any, Any]],
    arguments: Sequence[Any],
    **launch: Any,
) -> None:
    """Build `text` behind the prelude and launch one kernel on numpy arrays."""
    compiler = sycl.open_compiler()
    built = compiler.compile(source=sycl_source(text), options=[], kernels=[kernel])
    compiler.release()
    sequence = sycl.LaunchSequence(device)
    sequence.launch(
        program=device.load(code=built.code, kernels=[kernel]), kernel=kernel,
        arguments=[*(sycl.buffer_argument(i) for i in range(len(buffers))), *arguments],
        **({"grid": (1, 1, 1), "block": (16, 1, 1), "dimensions": 1} | launch),
    )  # fmt: skip
    sequence.bind(0, [buffer.ctypes.data for buffer in buffers])
    sequence.run(0)


RUNNER = """
import sys, numpy as np, kernel_foundry_native as native
sycl = native.device_kind("sycl")
device = sycl.open_device()
program = device.load(code=open(sys.argv[1], "rb").read(), kernels=["softmax_rows"])
rows, cols = 37, 1001
x = np.random.default_rng(0).standard_normal((rows, cols)).astype(np.float32)
out = np.full_like(x, np.nan)
sequence = sycl.LaunchSequence(device)
sequence.launch(
    program=program, kernel="softmax_rows", grid=(10, 1, 1), block=(128, 1, 1), dimensions=1,
    arguments=[sycl.buffer_argument(0), sycl.buffer_argument(1),
               sycl.scalar_argument("int32", rows), sycl.scalar_argument("int32", cols)])
sequence.bind(0, [x.ctypes.data, out.ctypes.data])
sequence.run(0)
power = np.exp(x - x.max(axis=1, keepdims=True), dtype=np.float64)
np.testing.assert_allclose(out, power / power.sum(axis=1, keepdims=True), rtol=1e-5, atol=1e-9)
sys.everything = [device, program, sequence]  # what outlives the interpreter's own clean-up
device.release()
print("right")
"""


def test_one_process_builds_and_another_runs(
    compiler: Any, softmax_source: str, tmp_path: Path
) -> None:
    built = compiler.compile(source=softmax_source, options=[], kernels=["softmax_rows"])
    assert struct.unpack("<I", built.code[:4]) == (SPIRV_MAGIC,)
    assert built.build_ns > 0
    (tmp_path / "softmax.spv").write_bytes(built.code)
    child = subprocess.run(
        [sys.executable, "-c", RUNNER, str(tmp_path / "softmax.spv")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (child.returncode, child.stdout) == (0, "right\n"), child.stderr


def test_local_memory_is_shared_by_a_work_group(sycl: ModuleType, device: Any) -> None:
    text = (
        KERNEL_1D
        + """
void reverse(const float* x, float* out, sycl::local_accessor<float, 1> tile) {
  auto it = syclext::this_work_item::get_nd_item<1>();
  const int lane = it.get_local_id(0), width = it.get_local_range(0);
  tile[lane] = x[it.get_global_id(0)];
  sycl::group_barrier(it.get_group());
  out[it.get_global_id(0)] = tile[width - 1 - lane];
}"""
    )
    x = np.arange(256, dtype=np.float32)
    out = np.zeros_like(x)
    run_once(
        sycl, device, text, "reverse", buffers=[x, out], arguments=[sycl.local_argument(4, 64)],
        grid=(4, 1, 1), block=(64, 1, 1),
    )  # fmt: skip
    np.testing.assert_array_equal(out, x.reshape(4, 64)[:, ::-1].reshape(-1))


def test_x_is_the_fastest_of_two_dimensions(sycl: ModuleType, device: Any) -> None:
    text = (
        KERNEL_2D
        + """
void place(int* out, int columns) {
  auto it = syclext::this_work_item::get_nd_item<2>();
  const int row = it.get_global_id(0), column = it.get_global_id(1);
  out[row * columns + column] = 100 * row + column;
}"""
    )
    out = np.zeros((6, 32), dtype=np.int32)
    run_once(
        sycl, device, text, "place", buffers=[out], arguments=[sycl.scalar_argument("int32", 32)],
        grid=(4, 3, 1), block=(8, 2, 1), dimensions=2,
    )  # fmt: skip
    np.testing.assert_array_equal(out, np.add.outer(100 * np.arange(6), np.arange(32)))


def test_every_scalar_type_arrives(sycl: ModuleType, device: Any) -> None:
    text = (
        KERNEL_1D
        + """
void collect(double* out, int8_t a, int16_t b, int32_t c, int64_t d, uint8_t e, uint16_t f,
             uint32_t g, uint64_t h, float i, double j, bool k, half l) {
  const double all[] = {double(a), double(b), double(c), double(d), double(e), double(f),
                        double(g), double(h), double(i), double(j), double(k), double(float(l))};
  for (int n = 0; n < 12; ++n) out[n] = all[n];
}"""
    )
    values = {
        "int8": -128, "int16": -300, "int32": -(2**31), "int64": -(2**53), "uint8": 255,
        "uint16": 65535, "uint32": 2**32 - 1, "uint64": 2**63, "float32": 0.5, "float64": 1e300,
        "bool": True, "float16": 1.5,
    }  # fmt: skip
    out = np.zeros(12, dtype=np.float64)
    scalars = [sycl.scalar_argument(ctype, value) for ctype, value in values.items()]
    run_once(sycl, device, text, "collect", buffers=[out], arguments=scalars, block=(1, 1, 1))
    np.testing.assert_array_equal(out, [float(value) for value in values.values()])


def test_a_number_that_does_not_fit_is_refused(sycl: ModuleType, device: Any) -> None:
    text = KERNEL_1D + "void k(int* out, int n) { out[0] = n; }"
    out = np.zeros(1, dtype=np.int32)
    with pytest.raises(native.LaunchError, match="2147483648 is no int32"):
        run_once(
            sycl, device, text, "k", buffers=[out], arguments=[sycl.scalar_argument("int32", 2**31)]
        )


def test_an_argument_too_few_is_a_launch_error(sycl: ModuleType, device: Any) -> None:
    text = KERNEL_1D + "void k(int* out, int n) { out[0] = n; }"
    with pytest.raises(native.LaunchError):
        run_once(sycl, device, text, "k", buffers=[np.zeros(1, dtype=np.int32)], arguments=[])


def test_steps_run_in_order_and_clear_at_every_run(
    sycl: ModuleType, device: Any, compiler: Any
) -> None:
    text = (
        KERNEL_1D
        + """
void add(float* sums) { sums[syclext::this_work_item::get_nd_item<1>().get_global_id(0)] += 1; }
"""
        + KERNEL_1D
        + """
void twice(const float* sums, float* out) {
  auto i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  out[i] = 2 * sums[i];
}"""
    )
    built = compiler.compile(source=sycl_source(text), options=[], kernels=["add", "twice"])
    program = device.load(code=built.code, kernels=["add", "twice"])
    sequence = sycl.LaunchSequence(device)
    geometry = {"grid": (4, 1, 1), "block": (16, 1, 1), "dimensions": 1}
    sums, out = (sycl.buffer_argument(i) for i in range(2))
    sequence.clear(0, 256)
    for _ in range(3):
        sequence.launch(program=program, kernel="add", arguments=[sums], **geometry)
    sequence.launch(program=program, kernel="twice", arguments=[sums, out], **geometry)
    arrays = [np.full(64, 7, dtype=np.float32), np.zeros(64, dtype=np.float32)]
    sequence.bind(0, [array.ctypes.data for array in arrays])
    for _ in range(2):
        sequence.run(0)
        np.testing.assert_array_equal(arrays[1], np.full(64, 6))


def test_kernels_of_different_sub_group_sizes_stay_in_one_module(
    device: Any, compiler: Any
) -> None:
    text = "".join(
        KERNEL_1D
        + f"SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::sub_group_size<{size}>)) "
        + f"void k{size}(int* out) {{ out[0] = {size}; }}\n"
        for size in (8, 32)
    )
    built = compiler.compile(source=sycl_source(text), options=[], kernels=["k8", "k32"])
    assert device.load(code=built.code, kernels=["k8", "k32"]).kernel_names == ["k8", "k32"]


def test_a_bad_source_brings_the_compilers_log(compiler: Any) -> None:
    code = KERNEL_1D + "void k(int* out) {\n  out[0] = missing;\n}"
    text = sycl_source('#line 1 "candidate.sycl"\n' + code)
    with pytest.raises(native.CompileError) as caught:
        compiler.compile(source=text, options=[], kernels=["k"])
    log = caught.value.log
    assert "error: use of undeclared identifier 'missing'" in log
    # `#line` rules the number beside the excerpt, not the one before the message.
    assert "\n    3 |   out[0] = missing;" in log


def test_a_kernel_that_is_not_in_the_source_is_a_compile_error(compiler: Any) -> None:
    text = sycl_source(KERNEL_1D + "void k(int* out) { out[0] = 1; }")
    with pytest.raises(native.CompileError, match="other"):
        compiler.compile(source=text, options=[], kernels=["k", "other"])


def test_measured_calls_have_device_spans_within_the_samples(
    sycl: ModuleType, device: Any, compiler: Any, softmax_source: str
) -> None:
    rows, cols = 64, 1024
    built = compiler.compile(source=softmax_source, options=[], kernels=["softmax_rows"])
    sequence = sycl.LaunchSequence(device)
    sequence.launch(
        program=device.load(code=built.code, kernels=["softmax_rows"]), kernel="softmax_rows",
        grid=(16, 1, 1), block=(128, 1, 1), dimensions=1,
        arguments=[
            sycl.buffer_argument(0), sycl.buffer_argument(1),
            sycl.scalar_argument("int32", rows), sycl.scalar_argument("int32", cols),
        ],
    )  # fmt: skip
    x = np.ones((2, rows, cols), dtype=np.float32)
    out = np.zeros_like(x)
    kept = np.full((3, rows, cols), np.nan, dtype=np.float32)
    for index in range(2):
        sequence.bind(index, [x[index].ctypes.data, out[index].ctypes.data])
    options = sycl.MeasureOptions(
        warmup_calls=3, min_samples=10, max_samples=100, max_seconds=5.0, target_half_width=0.05,
        set_count=2, is_cold=True,
    )  # fmt: skip
    found = sequence.measure(
        options,
        flush_bytes=4 << 20,
        outputs=[(1, out[0].nbytes)],
        keep_into=[[slot.ctypes.data] for slot in kept],
    )
    assert len(found.device_ns) == len(found.samples_ns) >= 10
    assert all(
        0 < span <= sample for span, sample in zip(found.device_ns, found.samples_ns, strict=True)
    )
    np.testing.assert_allclose(kept, 1 / cols, rtol=1e-5)
    assert POISON_BYTE not in kept.view(np.uint8)[..., 3::4]


def test_what_was_released_refuses_instead_of_crashing(
    sycl: ModuleType, softmax_source: str
) -> None:
    compiler, device = sycl.open_compiler(), sycl.open_device()
    for _ in range(2):
        compiler.release()
        device.release()
    with pytest.raises(native.DriverError, match="released"):
        compiler.compile(source=softmax_source, options=[], kernels=["softmax_rows"])
    with pytest.raises(native.DriverError, match="released"):
        device.load(code=b"", kernels=[])


def test_a_build_without_spirv_is_a_compile_error(compiler: Any) -> None:
    text = (  # without the prelude, which has what bfloat16 needs
        "#include <sycl/sycl.hpp>\nnamespace syclexp = sycl::ext::oneapi::experimental;\n"
        + KERNEL_1D
        + "void k(float* out) { sycl::ext::oneapi::bfloat16 x(out[0]); out[0] = float(x) * 2; }"
    )
    with pytest.raises(native.CompileError, match="built no SPIR-V"):
        compiler.compile(source=text, options=[], kernels=["k"])


def test_bfloat16_converts_as_torch_does(sycl: ModuleType) -> None:
    torch = pytest.importorskip("torch")
    values = np.array(
        [1.0, 1.00390625, 1.01171875, -3.3895314e38, 3.4e38, 1e-40, np.inf, np.nan, 0.1],
        dtype=np.float32,
    )
    narrow = np.zeros(len(values), dtype=np.uint16)
    wide = np.zeros_like(values)
    device = sycl.open_device()
    run_once(
        sycl,
        device,
        KERNEL_1D + "void k(const float* x, bfloat16* narrow, float* wide) {\n"
        "  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);\n"
        "  if (i < 9) { narrow[i] = bfloat16(x[i]); wide[i] = narrow[i] + narrow[i]; }\n}",
        "k",
        buffers=[values, narrow, wide],
        arguments=[],
    )
    device.release()
    expected = torch.from_numpy(values).bfloat16()

    got = torch.from_numpy(narrow).view(torch.bfloat16)
    np.testing.assert_array_equal(got.float().numpy(), expected.float().numpy())
    np.testing.assert_array_equal(wide, (expected + expected).float().numpy())
