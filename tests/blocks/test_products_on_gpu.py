"""Products in each format, by wgmma and by mma.sync, with k dealt out or not, on a GPU."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

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
        return ({a} @ {b}){rounded}

def get_inputs():
    return [torch.randn({a_shape}){cast}, torch.randn({b_shape}){cast}]

def get_init_inputs():
    return []
"""
STORE = """
  [=](int row, int column, float4 v) { kf::store4(out + (size_t)row * n, column, n, v); }
"""
PRODUCT = """```cuda
#include <cuda_fp8.h>
#include <kf/pack.hpp>
#include <kf/product.hpp>
using Gemm = kf::Product<{element}, {tile_m}, {tile_n}, 3, kf::Layout::{a}, kf::Layout::{b}{more}>;
extern "C" __global__ void __launch_bounds__(Gemm::THREADS, 1)
    multiply(const {element}* a, const {element}* b, {result}* out, int* maps, int m, int n, int k,
             int batches) {{
  Gemm::run({{a, b, maps, m, n, k, batches}}, {store});
}}
```
```python
def launch(a, b, out):
    batches, m, n = out.shape
    k = a.numel() // (batches * m)
    require({aligned})
    blocks = min(device.compute_units, batches * cdiv(m, {tile_m}) * cdiv(n, {tile_n}))
    maps = empty((blocks, 64), "int32")
    shared = 3 * 128 * ({tile_m} + {tile_n}) + 2048
    multiply[blocks, 128 * ({tile_m} // 64 + 1), shared](a, b, out, maps, m, n, k, batches)
```
"""
TURNED = """```cuda
#include <kf/pack.hpp>
#include <kf/product.hpp>
#include <kf/transpose.hpp>
using Gemm = kf::Product<float, {tile_m}, {tile_n}, 3>;
extern "C" __global__ void __launch_bounds__(256)
    turn(const float* x, float* out, int rows, int columns) {{
  kf::transpose(x, out, rows, columns);
}}
extern "C" __global__ void __launch_bounds__(Gemm::THREADS, 1)
    multiply(const float* a, const float* b, float* out, int* maps, int m, int n, int k,
             int batches) {{
  Gemm::run({{a, b, maps, m, n, k, batches}}, {store});
}}
```
```python
def launch(a, b, out):
    batches, m, k = a.shape
    n = out.shape[2]
    require({aligned})
    turned = empty((batches, n, k), "float32")
    turn[(cdiv(n, 32), cdiv(k, 32), batches), 256](b, turned, k, n)
    blocks = min(device.compute_units, batches * cdiv(m, {tile_m}) * cdiv(n, {tile_n}))
    maps = empty((blocks, 64), "int32")
    shared = 3 * 128 * ({tile_m} + {tile_n}) + 2048
    multiply[blocks, 128 * ({tile_m} // 64 + 1), shared](a, turned, out, maps, m, n, k, batches)
```
"""
MMA = """```cuda
#include <cuda_fp8.h>
#include <kf/mma_product.hpp>
#include <kf/pack.hpp>
using Gemm =
    kf::MmaProduct<{element}, {tile_m}, {tile_n}, 3, kf::Layout::{a}, kf::Layout::{b}, {more}>;
extern "C" __global__ void __launch_bounds__(Gemm::THREADS)
    multiply(const {element}* a, const {element}* b, {result}* out, int m, int n, int k,
             int batches) {{
  Gemm::run({{a, b, m, n, k, batches}}, {store});
}}
```
```python
def launch(a, b, out):
    batches, m, n = out.shape
    k = a.numel() // (batches * m)
    require({aligned})
    blocks = min(device.compute_units, batches * cdiv(m, {tile_m}) * cdiv(n, {tile_n}))
    shared = 3 * 128 * ({tile_m} + {tile_n}) + 1024
    multiply[blocks, {tile_m} // 64 * ({tile_n} // {more}) * 32, shared](
        a, b, out, m, n, k, batches
    )
```
"""
STREAM_K = """```cuda
#include <cuda_fp8.h>
#include <kf/pack.hpp>
#include <kf/stream_k.hpp>
using Gemm = kf::Product<{element}, {tile_m}, {tile_n}, 3, kf::Layout::{a}, kf::Layout::{b}>;
using Split = kf::StreamK<Gemm>;
extern "C" __global__ void __launch_bounds__(Gemm::THREADS, 1)
    multiply(const {element}* a, const {element}* b, float* parts, {result}* out, int* maps, int m,
             int n, int k, int batches) {{
  Split::run({{a, b, maps, m, n, k, batches}}, parts, {store});
}}
extern "C" __global__ void __launch_bounds__(256)
    add(const float* parts, {result}* out, int m, int n, int k, int batches, int blocks) {{
  Split::finish({{nullptr, nullptr, nullptr, m, n, k, batches}}, parts, blocks, {store});
}}
```
```python
def launch(a, b, out):
    batches, m, n = out.shape
    k = a.numel() // (batches * m)
    require({aligned})
    blocks = {more}
    maps = empty((blocks, 64), "int32")
    parts = empty((blocks, 2, {tile_m}, {tile_n}), "float32")
    shared = 3 * 128 * ({tile_m} + {tile_n}) + 2048
    multiply[blocks, 128 * ({tile_m} // 64 + 1), shared](
        a, b, parts, out, maps, m, n, k, batches
    )
    add[2 * blocks, 256](parts, out, m, n, k, batches, blocks)
```
"""
ALL_UNITS = "device.compute_units"
FP8 = ("__nv_fp8_e4m3", ".to(torch.float8_e4m3fn)")
FP8_WIDE = ("__nv_fp8_e5m2", ".to(torch.float8_e5m2)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A product and how it is made."""

    text: str
    element: str
    layouts: tuple[str, str] = ("MK", "NK")
    tile: tuple[int, int] = (128, 128)
    more: str = ""
    cast: str = ""
    result: str = ""
    aligned: str = "k % 8 == 0"
    """What a contiguous axis has to be for copies of 16 bytes; tasks are tried at other sizes."""
    precision: Precision | None = None
    tf32: bool = False
    sizes: dict[str, int] = field(default_factory=lambda: {"M": 328, "N": 520, "K": 400})


CASES = {
    "tf32": Case(text=PRODUCT, element="float", tile=(128, 256), aligned="k % 4 == 0", tf32=True),
    "tf32 turned": Case(
        text=TURNED, element="float", layouts=("MK", "KN"), aligned="k % 4 == 0", tf32=True
    ),
    "e4m3": Case(
        text=PRODUCT, element=FP8[0], cast=FP8[1], result="__nv_bfloat16", aligned="k % 16 == 0"
    ),
    "e4m3 in cores": Case(
        text=PRODUCT,
        element=FP8[0],
        cast=FP8[1],
        result="__nv_bfloat16",
        aligned="k % 16 == 0",
        tile=(128, 256),
        more=", kf::Sums::CORES",
    ),
    "e5m2": Case(
        text=PRODUCT,
        element=FP8_WIDE[0],
        cast=FP8_WIDE[1],
        result="__nv_bfloat16",
        aligned="k % 16 == 0",
        tile=(64, 192),
    ),
    "stream-K": Case(
        text=STREAM_K,
        element="__nv_bfloat16",
        layouts=("MK", "KN"),
        aligned="k % 8 == 0 and n % 8 == 0",
        tile=(128, 256),
        more=ALL_UNITS,
        precision=Precision.BF16,
        sizes={"M": 75, "N": 520, "K": 4104},
    ),
    "stream-K, whole tiles too": Case(
        text=STREAM_K,
        element="__half",
        layouts=("KM", "NK"),
        aligned="m % 8 == 0 and k % 8 == 0",
        tile=(64, 64),
        more="7",
        precision=Precision.FP16,
    ),
    "stream-K in 8 bits": Case(
        text=STREAM_K,
        element=FP8[0],
        cast=FP8[1],
        result="__nv_bfloat16",
        aligned="k % 16 == 0",
        more=ALL_UNITS,
    ),
    "mma.sync, float16": Case(
        text=MMA,
        element="__half",
        layouts=("KM", "KN"),
        aligned="m % 8 == 0 and n % 8 == 0",
        more="64",
        precision=Precision.FP16,
    ),
    "mma.sync, bfloat16": Case(
        text=MMA,
        element="__nv_bfloat16",
        layouts=("MK", "KN"),
        aligned="k % 8 == 0 and n % 8 == 0",
        tile=(64, 256),
        more="32",
        precision=Precision.BF16,
    ),
    "mma.sync, e4m3": Case(
        text=MMA,
        element=FP8[0],
        cast=FP8[1],
        result="__nv_bfloat16",
        aligned="k % 16 == 0",
        more="32",
    ),
    "mma.sync, e5m2": Case(
        text=MMA,
        element=FP8_WIDE[0],
        cast=FP8_WIDE[1],
        result="__nv_bfloat16",
        aligned="k % 16 == 0",
        more="32",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_product_passes_in_its_format(
    local_evaluator: Callable[[str], LocalEvaluator], case: Case
) -> None:
    wide = ".float()" if case.cast else ""
    reference = REFERENCE.format(
        a=f"a{wide}" if case.layouts[0] == "MK" else f"a{wide}.mT",
        b=f"b{wide}" if case.layouts[1] == "KN" else f"b{wide}.mT",
        a_shape=", ".join(str(case.sizes[axis]) for axis in case.layouts[0]),
        b_shape=", ".join(str(case.sizes[axis]) for axis in case.layouts[1]),
        cast=case.cast,
        rounded=".to(torch.bfloat16)" if case.cast else "",
    ).replace("torch.randn(", "torch.randn(3, ")
    text = case.text.format(
        element=case.element,
        tile_m=case.tile[0],
        tile_n=case.tile[1],
        a=case.layouts[0],
        b=case.layouts[1],
        more=case.more,
        result=case.result or case.element,
        aligned=case.aligned,
        store=STORE.strip(),
    )
    task = Task(
        name="product",
        reference=reference,
        workloads=(Workload(name="default"),),
        precision=case.precision,
        tf32=case.tf32,
    )
    request = EvaluationRequest(task=task, device="cuda:0", source=split(text))

    verdict = asyncio.run(local_evaluator("cuda").evaluate(request))

    assert verdict.passed, [finding.message for finding in verdict.findings]


SOFTMAX = """```cuda
#include <kf/cluster.hpp>
#include <kf/rows.hpp>
extern "C" __global__ void __cluster_dims__(BLOCKS, 1, 1) __launch_bounds__(256)
    softmax(const float* __restrict__ x, float* __restrict__ out, int columns) {
  const size_t at = (size_t)(blockIdx.x / BLOCKS) * columns + kf::cluster_rank() * SHARE;
  const int own = max(min(SHARE, columns - kf::cluster_rank() * SHARE), 0);
  kf::Row<256, 16> row;
  row.load(x + at, own, -INFINITY);
  kf::Softmax found;
  row.each_pack([&](float (&v)[4], int) { found.add(v); });
  found = kf::cluster_reduce<256>(found, kf::Join());
  const float scale = 1.0f / found.sum;
  row.each([=](float& v) { v = __expf(v - found.maximum) * scale; });
  row.store(out + at, own);
}
```
```python
TUNE = {"BLOCKS": [4]}
CONST = {"SHARE": "16 * 256 * 4"}

def launch(x, out):
    rows, columns = x.shape
    require(columns <= BLOCKS * SHARE)
    softmax[BLOCKS * rows, 256](x, out, columns)
```
"""
SOFTMAX_REFERENCE = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)

def get_inputs():
    return [torch.randn(7, 50001)]

def get_init_inputs():
    return []
"""


def test_a_cluster_reduces_rows_that_no_block_could_hold(
    local_evaluator: Callable[[str], LocalEvaluator],
) -> None:
    task = Task(name="softmax", reference=SOFTMAX_REFERENCE)
    request = EvaluationRequest(task=task, device="cuda:0", source=split(SOFTMAX))

    verdict = asyncio.run(local_evaluator("cuda").evaluate(request))

    assert verdict.passed, [finding.message for finding in verdict.findings]
