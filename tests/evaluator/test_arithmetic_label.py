"""How a candidate computes is named where object code and measured bits show it together."""

import pytest

from evaluator_svc.inspector import inspect_ptx
from evaluator_svc.pipeline.correctness.arithmetic_label import arithmetic_text
from evaluator_svc.policy import ObjectFacts
from tests.behaviour import nvrtc

FMA = ObjectFacts()
BFLOAT16 = ObjectFacts(formats=("bfloat16",), uses_matrix_units=True, matrix_formats=("bfloat16",))
THREE = ObjectFacts(
    formats=("bfloat16",),
    uses_matrix_units=True,
    matrix_formats=("bfloat16",),
    products_of_a_step=3,
)
TF32 = ObjectFacts(formats=("TF32",), uses_matrix_units=True, matrix_formats=("TF32",))


@pytest.mark.parametrize(
    ("is_narrow", "facts", "bits", "library", "text"),
    [
        (False, FMA, 23.1, False, "float32, nothing narrower"),
        (False, THREE, 17.8, False, "float32 by three bfloat16 products"),
        (False, BFLOAT16, 17.8, False, "float32 by split bfloat16 products"),
        # One product leaves 8 bits, and nobody can say of unmeasured ones that they were split.
        (False, THREE, 8.9, False, "bfloat16 products on matrix units"),
        (False, THREE, None, False, "bfloat16 products on matrix units"),
        (False, TF32, 11.2, False, "TF32 products on matrix units"),
        (False, TF32, 21.0, False, "float32 by split TF32 products"),
        (False, FMA, 23.0, True, "library calls; own kernels: float32, nothing narrower"),
        (False, None, 23.0, True, "library calls"),
        (False, None, 23.0, False, ""),
        (False, ObjectFacts(masks_low_bits=True), 17.0, False, ""),
        (True, FMA, 11.0, False, ""),
        (
            True,
            ObjectFacts(uses_matrix_units=True, matrix_formats=("float16",)),
            11.0,
            False,
            "float16 products on matrix units",
        ),
    ],
)
def test_only_what_shows_is_said(
    is_narrow: bool, facts: ObjectFacts | None, bits: float | None, library: bool, text: str
) -> None:
    found = arithmetic_text(facts, is_narrow=is_narrow, effective_bits=bits, uses_library=library)

    assert found == text


SPLIT = """
#include <mma.h>
using namespace nvcuda;
template <int PRODUCTS>
__device__ void step(wmma::fragment<wmma::accumulator, 16, 16, 16, float>* sum,
                     const __nv_bfloat16* a, const __nv_bfloat16* b) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> high[2], low[2];
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::row_major> top, rest;
  wmma::load_matrix_sync(top, b, 16);
  if (PRODUCTS > 1) wmma::load_matrix_sync(rest, b + 256, 16);
  for (int i = 0; i < 2; ++i) {
    wmma::load_matrix_sync(high[i], a + 512 * i, 16);
    wmma::mma_sync(sum[i], high[i], top, sum[i]);
    if (PRODUCTS > 1) {
      wmma::load_matrix_sync(low[i], a + 512 * i + 256, 16);
      wmma::mma_sync(sum[i], high[i], rest, sum[i]);
      wmma::mma_sync(sum[i], low[i], top, sum[i]);
    }
  }
}
extern "C" __global__ void k(float* out, const __nv_bfloat16* a, const __nv_bfloat16* b, int n) {
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[2];
  for (int i = 0; i < 2; ++i) wmma::fill_fragment(sum[i], 0.0f);
#pragma unroll 2
  for (int t = 0; t < n; ++t) step<PRODUCTS>(sum, a + 1024 * t, b + 512 * t);
  for (int i = 0; i < 2; ++i)
    wmma::store_matrix_sync(out + 256 * i, sum[i], 16, wmma::mem_row_major);
}
"""


@pytest.mark.skipif(bool(nvrtc.absence()), reason=nvrtc.absence() or "NVRTC is there")
@pytest.mark.parametrize(("products", "found"), [(1, 0), (3, 3)])
def test_products_of_a_step_are_counted_in_ptx(products: int, found: int) -> None:
    built = nvrtc.build(
        f"#include <cuda_bf16.h>\n#define PRODUCTS {products}\n{SPLIT}".replace(
            "template <int PRODUCTS>", "template <int N>"
        ).replace("PRODUCTS > 1", "N > 1")
    )
    assert built.ptx, built.log
    facts = inspect_ptx(built.ptx).numbers

    assert (facts.matrix_formats, facts.products_of_a_step) == (("bfloat16",), found)
