"""The arithmetic estimate: what a reference's FLOPs take on the fastest unit that may do them.

No bound: a kernel that computes less than the graph (algebra, Winograd, skipped work), or cheaper,
is faster.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from evaluator_svc.judge.graph.cost import Cost
from kernel_foundry.domain.device import Peaks

FMA: Final = "FMA"

_FORMATS: Final = {
    "float16": "fp16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "fp8_e4m3",
    "int8": "int8",
}
"""Units for operands of a dtype."""

_SPLIT_PRODUCTS: Final = 3
"""Products of 16 bits that make one of float32: high by high, high by low, low by high.

Source: Ozaki, Ogita, Oishi and Rump 2012; with sums in float32 some 17 to 21 bits are right.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArithmeticEstimate:
    """What the FLOPs of one call take."""

    time_ns: float
    unit: str
    """What products run on: "FMA", "bf16 matrix units", "three bf16 products"."""


def arithmetic_estimate(cost: Cost, peaks: Peaks, *, tf32: bool) -> ArithmeticEstimate:
    """Return products at the rate of the fastest unit admitted, and all else at that of FMA.

    Args:
        cost: FLOPs of one call.
        peaks: The device's measured rates.
        tf32: Whether the task allows TF32 in float32 products.
    """
    fma = peaks.flops_per_second
    if not cost.product_flops:
        return ArithmeticEstimate(time_ns=1e9 * cost.other_flops / fma, unit=FMA)
    unit, rate = max(_units(cost.product_dtype, peaks, tf32=tf32), key=lambda found: found[1])
    seconds = cost.product_flops / rate + cost.other_flops / fma
    return ArithmeticEstimate(time_ns=1e9 * seconds, unit=unit)


def _units(dtype: str, peaks: Peaks, *, tf32: bool) -> Iterator[tuple[str, float]]:
    """Yield every unit that products of `dtype` may run on, with its rate in FLOP/s."""
    rates = {rate.format: rate.flops_per_second for rate in peaks.matrix_rates}
    yield FMA, peaks.flops_per_second
    if dtype in _FORMATS and _FORMATS[dtype] in rates:
        name = _FORMATS[dtype]
        yield f"{name} matrix units", rates[name]
    if dtype != "float32":
        return
    if tf32 and "tf32" in rates:
        yield "tf32 matrix units", rates["tf32"]
    if "bf16" in rates:
        yield "three bf16 products", rates["bf16"] / _SPLIT_PRODUCTS
