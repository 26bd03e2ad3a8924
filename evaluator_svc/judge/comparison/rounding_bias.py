"""Whether an output of 16 bits was rounded, or cut: where its errors lie on average.

Rounding errs to either side. What is cut is half a unit too small on average, which is within any
tolerance, and a bias that later layers add up.
"""

from typing import Final

import torch

from evaluator_svc.judge.comparison.output_errors import OutputLines

_LEAST_ELEMENTS: Final = 1024
"""Fewest that tell: the mean of as many errors is off by a hundredth of a unit by chance."""
_MOST_ELEMENTS: Final = 1 << 18
_CLOSE_SHARE: Final = 0.9
"""Least share of elements within a unit: else something else than rounding decides."""


def rounding_bias(output: OutputLines, dtype: torch.dtype) -> float:
    """Return how far results lie from those of eager PyTorch, away from zero, in units.

    The mean of the signed errors less that of eager, in units of the last place of `dtype`. Zero
    where too few elements tell, or where errors are not those of one rounding.
    """
    exact = output.exact.flatten()
    stride = -(-exact.numel() // _MOST_ELEMENTS)
    exact = exact[::stride].double()
    is_usual = exact.isfinite() & (exact.abs() >= torch.finfo(dtype).smallest_normal)
    is_usual &= exact.abs() <= torch.finfo(dtype).max / 2
    exact = exact[is_usual]
    if len(exact) < _LEAST_ELEMENTS:
        return 0.0
    units = torch.ldexp(exact.sign() * torch.finfo(dtype).eps, torch.frexp(exact).exponent - 1)
    means = []
    for version in (output.actual, output.eager):
        errors = (version.flatten()[::stride].double()[is_usual] - exact) / units
        if float((errors.abs() <= 1.0).double().mean()) < _CLOSE_SHARE:
            return 0.0
        means.append(float(errors.clamp(-1.0, 1.0).mean()))
    return means[0] - means[1]
