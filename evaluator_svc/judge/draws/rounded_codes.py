"""Whole numbers that rounding decides: in how many of them a kernel may differ from the reference.

A code is a rounded float, as of a quantised tensor. Where that float lies beside the middle between
two codes, another order of operations gives the neighbour: 4 to 15 of 16 million, and no kernel
can avoid it. How many that are is measured on the reference: its results are moved by a multiple of
their rounding errors, and what moves by one then, in proportion, is what may differ by one. What
no rounding moves, such as the place of a largest input, is to be equal.
"""

import math
from typing import Final

from evaluator_svc.judge.admission.tolerance import RoundingNoise
from evaluator_svc.judge.draws.prepared import PREPARATION_SEED, PreparedWorkload

_UNITS: Final = 32.0
"""Units in the last place that results are moved by: so many more codes tell the share."""
_UNIT: Final = 0.5
"""What rounding itself moves them by."""
_ELEMENTS: Final = 1 << 24
"""About as many are looked at…"""
_RUNS: Final = (2, 8)
"""…in so many runs, at least and at most."""
_SAFETY: Final = 8.0
"""Times the share: other algorithms round more often, and in other places."""
_DEVIATIONS: Final = 4.0
"""Of the number that is expected, which is small: what chance may add."""
_MOST_SHARE: Final = 1 / 1024
"""Of an output's elements, whatever rounding decides."""


def allowed_codes(prepared: PreparedWorkload, output: int, elements: int) -> int:
    """Return how many of an output's elements may differ by one from what is expected.

    Raises:
        TaskInvalidError: the reference raises.
    """
    if prepared.code_shares is None:
        prepared.code_shares = _code_shares(prepared)
    share = prepared.code_shares[output]
    if not share:
        return 0
    expected = _SAFETY * share * elements
    count = math.floor(1.0 + expected + _DEVIATIONS * math.sqrt(expected))
    return min(count, int(_MOST_SHARE * elements))


def _code_shares(prepared: PreparedWorkload) -> tuple[float, ...]:
    """Return the share of each output's elements that a rounding error moves, by no more than 1."""
    drawn = prepared.input_set(PREPARATION_SEED)
    own = drawn.run()
    sizes = [output.numel() for output in own if not output.is_floating_point()]
    least, most = _RUNS
    runs = min(max(_ELEMENTS // max(*sizes, 1), least), most)
    moved, furthest = [0] * len(own), [0] * len(own)
    for seed in range(runs):
        with RoundingNoise(seed=seed, device=drawn.module.device, units=_UNITS):
            other = drawn.run()
        for index, (one, two) in enumerate(zip(own, other, strict=True)):
            if not one.is_floating_point():
                steps = (one.long() - two.long()).abs_()
                moved[index] += int(steps.count_nonzero())
                furthest[index] = max(furthest[index], int(steps.max())) if steps.numel() else 0
    return tuple(
        count / (runs * output.numel()) * _UNIT / _UNITS if step == 1 else 0.0
        for count, step, output in zip(moved, furthest, own, strict=True)
    )
