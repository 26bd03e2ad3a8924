"""Device kinds and device code for the tests of the native layer."""

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

import kernel_foundry_native as native
from kernel_foundry_native import _core
from kernel_foundry_native.sycl_headers import needed_headers

SOFTMAX_ROWS = """
#define SG 32
#define ROWS 4
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::sub_group_size<SG>))
void softmax_rows(const float* __restrict__ x, float* __restrict__ out, int rows, int cols) {
  auto it = syclext::this_work_item::get_nd_item<1>();
  auto sg = it.get_sub_group();
  const int lane = sg.get_local_id()[0], row = it.get_group(0) * ROWS + sg.get_group_id()[0];
  if (row >= rows) return;
  const float* in = x + (size_t)row * cols;
  float* to = out + (size_t)row * cols;
  const int body = cols / SG * SG, tail = body + lane;
  float top = tail < cols ? in[tail] : -INFINITY;
  for (int i = 0; i < body; i += SG) top = sycl::fmax(top, in[i + lane]);
  top = sycl::reduce_over_group(sg, top, sycl::maximum<float>());
  float sum = tail < cols ? sycl::exp(in[tail] - top) : 0.0f;
  for (int i = 0; i < body; i += SG) sum += to[i + lane] = sycl::exp(in[i + lane] - top);
  const float all = sycl::reduce_over_group(sg, sum, sycl::plus<float>()), scale = 1.0f / all;
  for (int i = 0; i < body; i += SG) to[i + lane] *= scale;
  if (tail < cols) to[tail] = sycl::exp(in[tail] - top) * scale;
}
"""


@pytest.fixture
def options() -> Callable[..., _core.MeasureOptions]:
    """Return options for a short measurement; keywords change them."""

    def make(**changes: Any) -> _core.MeasureOptions:
        plain: dict[str, Any] = {
            "warmup_calls": 1,
            "min_samples": 10,
            "max_samples": 40,
            "max_seconds": 5.0,
            "target_half_width": -1.0,  # never: identical samples would reach 0
            "set_count": 1,
            "is_cold": False,
        }
        return _core.MeasureOptions(**(plain | changes))

    return make


@pytest.fixture(scope="session")
def sycl() -> ModuleType:
    """Return the SYCL module; only for tests marked `sycl`."""
    return native.device_kind("sycl")


@pytest.fixture
def device(sycl: ModuleType) -> Iterator[Any]:
    opened = sycl.open_device()
    yield opened
    opened.release()


@pytest.fixture
def compiler(sycl: ModuleType) -> Iterator[Any]:
    opened = sycl.open_compiler()
    yield opened
    opened.release()


def sycl_source(text: str) -> str:
    """Return a whole translation unit, with the headers that the text names: others take longer."""
    headers = f"#define KERNEL_FOUNDRY_HEADERS {needed_headers(text)}\n"
    return headers + native.prelude("sycl") + text


@pytest.fixture(scope="session")
def softmax_source() -> str:
    """Return a whole translation unit with the kernel `softmax_rows(x, out, rows, cols)`."""
    return sycl_source(SOFTMAX_ROWS)
