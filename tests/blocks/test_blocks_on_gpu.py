"""The blocks on a GPU, from text to verdict: layouts, tiles and formats, with ragged tiles."""

import asyncio
from collections.abc import Callable
from itertools import product

import pytest

from evaluator_svc.evaluator import LocalEvaluator
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.task import Precision, Task, Workload
from kernel_foundry.plan.candidate_text import split

pytestmark = pytest.mark.gpu

REFERENCE = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, a, b):
        return {a} @ {b}

def get_inputs():
    return [torch.randn(3, {a_shape}), torch.randn(3, {b_shape})]

def get_init_inputs():
    return []
"""
EVEN = {"M": 328, "N": 520, "K": 392}
ODD = {"M": 327, "N": 521, "K": 389}

PRODUCT = """```cuda
#include <kf/pack.hpp>
#include <kf/product.hpp>
using Gemm = kf::Product<__nv_bfloat16, TILE_M, TILE_N, STAGES, kf::Layout::A_LAYOUT,
                         kf::Layout::B_LAYOUT>;
extern "C" __global__ void __launch_bounds__(Gemm::THREADS, 1)
    multiply(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* out, int* maps, int m,
             int n, int k, int batches) {
  Gemm::run({a, b, maps, m, n, k, batches}, [=](int row, int column, float4 v) {
    kf::store4(out + (size_t)row * n, column, n, v);
  });
}
```
```python
TUNE = {"TILE_M": [%d], "TILE_N": [%d], "STAGES": [3], "A_LAYOUT": ["%s"], "B_LAYOUT": ["%s"]}

def launch(a, b, out):
    require(a.shape[2] %% 8 == 0 and b.shape[2] %% 8 == 0)
    batches, m, n = out.shape
    k = a.numel() // (batches * m)
    blocks = min(device.compute_units, batches * cdiv(m, TILE_M) * cdiv(n, TILE_N))
    maps = empty((blocks, 64), "int32")
    shared = STAGES * 128 * (TILE_M + TILE_N) + 2048
    multiply[blocks, 128 * (TILE_M // 64 + 1), shared](a, b, out, maps, m, n, k, batches)
```
"""

SPLIT = """```cuda
#include <kf/pack.hpp>
#include <kf/split.hpp>
using Gemm = kf::SplitProduct<TILE_M, TILE_N, 2, kf::Layout::A_LAYOUT, kf::Layout::B_LAYOUT>;
extern "C" __global__ void __launch_bounds__(256)
    by_rows(const float* x, __half* parts, int* exponents, int rows, int columns, int padded) {
  kf::split_rows<256>(x, parts, exponents, rows, columns, padded);
}
extern "C" __global__ void __launch_bounds__(256)
    find_maxima(const float* x, unsigned* maxima, int rows, int columns) {
  kf::column_maxima<128>(x, maxima, rows, columns);
}
extern "C" __global__ void __launch_bounds__(256)
    by_columns(const float* x, const unsigned* maxima, __half* parts, int* exponents, int rows,
               int columns, int padded) {
  kf::split_columns(x, maxima, parts, exponents, rows, columns, padded);
}
extern "C" __global__ void __launch_bounds__(Gemm::THREADS, 1)
    multiply(const __half* a, const __half* b, const int* a_exponents, const int* b_exponents,
             float* out, int* maps, int m, int n, int k, int batches) {
  Gemm::run({a, b, maps, m, n, k, batches}, a_exponents, b_exponents,
            [=](int row, int column, float4 v) {
              kf::store4(out + (size_t)row * n, column, n, v);
            });
}
```
```python
TUNE = {"TILE_M": [%d], "TILE_N": [%d], "A_LAYOUT": ["%s"], "B_LAYOUT": ["%s"]}

def parts_of(x, batches, rows, columns, by_row):
    padded = cdiv(columns, 8) * 8
    parts = empty((batches, 2, rows, padded), "float16")
    if by_row:
        exponents = empty((batches * rows,), "int32")
        by_rows[batches * rows, 256](x, parts, exponents, rows, columns, padded)
    else:
        exponents = empty((batches * columns,), "int32")
        maxima = zeros((batches * columns,), "uint32")
        find_maxima[(cdiv(columns, 128), cdiv(rows, 128), batches), 256](x, maxima, rows, columns)
        grid = (cdiv(padded, 1024), rows, batches)
        by_columns[grid, 256](x, maxima, parts, exponents, rows, columns, padded)
    return parts, exponents

def launch(a, b, out):
    batches, m, n = out.shape
    k = a.numel() // (batches * m)
    a_parts, a_exponents = parts_of(a, batches, a.shape[1], a.shape[2], A_LAYOUT == "MK")
    b_parts, b_exponents = parts_of(b, batches, b.shape[1], b.shape[2], B_LAYOUT == "NK")
    blocks = min(device.compute_units, batches * cdiv(m, TILE_M) * cdiv(n, TILE_N))
    maps = empty((blocks, 64), "int32")
    shared = 512 * (TILE_M + TILE_N) + 2048
    multiply[blocks, 128 * (TILE_M // 64 + 1), shared](
        a_parts, b_parts, a_exponents, b_exponents, out, maps, m, n, k, batches
    )
```
"""


ATTENTION = """```cuda
#include <kf/attention.hpp>
#include <kf/pack.hpp>
using Block = kf::Attention<ELEMENT, HEAD, TILE_K, STAGES, CAUSAL>;
extern "C" __global__ void __launch_bounds__(Block::THREADS, 1)
    attention(const ELEMENT* q, const ELEMENT* k, const ELEMENT* v, ELEMENT* out, int* maps,
              int planes, int q_length, int k_length, int group, float scale) {
  Block::run({q, k, v, maps, planes, q_length, k_length, group, scale},
             [=](int row, int column, float4 x) {
               kf::store4(out + (size_t)row * HEAD, column, HEAD, x);
             });
}
```
```python
TUNE = {"ELEMENT": ["%s"], "HEAD": [%d], "TILE_K": [%d], "STAGES": [%d], "CAUSAL": ["%s"]}

def launch(q, k, v, out):
    batches, heads, length, size = q.shape
    require(size == HEAD and heads %% k.shape[1] == 0)
    planes = batches * heads
    blocks = min(device.compute_units, planes * cdiv(length, 128))
    maps = empty((blocks, 96), "int32")
    attention[blocks, 384, 256 * HEAD + 4 * STAGES * TILE_K * HEAD + 2048](
        q, k, v, out, maps, planes, length, k.shape[2], heads // k.shape[1], 1.0 / sqrt(size)
    )
```
"""
ATTENTION_REFERENCE = """
import torch
from torch import nn
from torch.nn import functional

class Model(nn.Module):
    def forward(self, q, k, v):
        return functional.scaled_dot_product_attention(q, k, v, is_causal={causal}, enable_gqa=True)

def get_inputs():
    shape = (2, {kv_heads}, {kv_length}, {head})
    return [torch.randn(2, 4, 333, {head}), torch.randn(shape), torch.randn(shape)]

def get_init_inputs():
    return []
"""


def _task(a_layout: str, b_layout: str, precision: Precision) -> Task:
    sizes = EVEN if precision is Precision.BF16 else ODD
    reference = REFERENCE.format(
        a="a" if a_layout == "MK" else "a.mT",
        b="b" if b_layout == "KN" else "b.mT",
        a_shape=", ".join(str(sizes[axis]) for axis in a_layout),
        b_shape=", ".join(str(sizes[axis]) for axis in b_layout),
    )
    return Task(
        name=f"product_{a_layout}_{b_layout}",
        reference=reference,
        workloads=(Workload(name="default"),),
        precision=precision,
    )


@pytest.mark.parametrize(
    ("layouts", "tile", "precision"),
    [
        *((layouts, (128, 256), Precision.BF16) for layouts in product(("MK", "KM"), ("NK", "KN"))),
        *((layouts, (128, 128), Precision.FP32) for layouts in product(("MK", "KM"), ("NK", "KN"))),
        (("MK", "KN"), (64, 192), Precision.BF16),
        (("KM", "NK"), (192, 128), Precision.BF16),
        (("KM", "KN"), (64, 64), Precision.FP32),
    ],
)
def test_a_product_passes_in_every_layout(
    local_evaluator: Callable[[str], LocalEvaluator],
    layouts: tuple[str, str],
    tile: tuple[int, int],
    precision: Precision,
) -> None:
    text = (PRODUCT if precision is Precision.BF16 else SPLIT) % (*tile, *layouts)
    request = EvaluationRequest(
        task=_task(*layouts, precision), device="cuda:0", source=split(text)
    )

    verdict = asyncio.run(local_evaluator("cuda").evaluate(request))

    assert verdict.passed, [finding.message for finding in verdict.findings]


@pytest.mark.parametrize(
    ("precision", "head", "tile", "stages", "causal", "kv_heads", "kv_length"),
    [
        (Precision.BF16, 128, 128, 2, True, 4, 333),
        (Precision.BF16, 128, 64, 3, False, 2, 411),
        (Precision.FP16, 64, 128, 3, False, 1, 70),
        (Precision.FP16, 64, 64, 4, True, 2, 333),
    ],
)
def test_attention_passes_with_heads_that_share_keys_and_with_ragged_tiles(
    local_evaluator: Callable[[str], LocalEvaluator],
    precision: Precision,
    head: int,
    tile: int,
    stages: int,
    causal: bool,
    kv_heads: int,
    kv_length: int,
) -> None:
    element = "__nv_bfloat16" if precision is Precision.BF16 else "__half"
    text = ATTENTION % (element, head, tile, stages, "true" if causal else "false")
    reference = ATTENTION_REFERENCE.format(
        causal=causal, kv_heads=kv_heads, kv_length=kv_length, head=head
    )
    task = Task(
        name="attention",
        reference=reference,
        workloads=(Workload(name="default"),),
        precision=precision,
    )
    request = EvaluationRequest(task=task, device="cuda:0", source=split(text))

    verdict = asyncio.run(local_evaluator("cuda").evaluate(request))

    assert verdict.passed, [finding.message for finding in verdict.findings]
