"""Whole numbers that rounding decides: in how many of them a kernel may differ from the reference.

A code is a rounded float, as of a quantised tensor. Where that float lies beside the middle between
two codes, another order of operations gives the neighbour: 4 to 15 of 16 million, and no kernel
can avoid it. How many that are is measured on the reference: its results are moved by a multiple of
their rounding errors, and what moves by one then, in proportion, is what may differ by one. What
lies exactly on a border, as the largest element of a row that is cut to 255 levels does, moves with
any error: it is counted at one rounding error. What no rounding moves, such as the place of a
largest input, is to be equal.
"""

import math
from collections.abc import Sequence
from typing import Final

import torch

from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import (
    PREPARATION_SEED,
    CodeShare,
    PreparedWorkload,
)
from evaluator_svc.judge.tensors.rounding_noise import RoundingNoise

_UNITS: Final = 32.0
"""Units in the last place by which results are moved, so that enough codes change to measure it."""
_UNIT: Final = 0.5
"""Units in the last place by which rounding itself moves results."""
_ELEMENTS: Final = 1 << 24
"""About so many elements are examined in all."""
_RUNS: Final = (2, 8)
"""Fewest and most runs in which they are examined."""
_SAFETY: Final = 8.0
"""Factor of the measured share: other algorithms round more often, and in other places."""
_DEVIATIONS: Final = 4.0
"""Standard deviations that chance may add to the expected number, which is small."""
_MOST_SHARE: Final = 1 / 1024
"""Largest share of an output's elements that may differ, beyond those on borders."""
_BORDER_SAFETY: Final = 3.0
"""Factor of the share that moves at one rounding error: at least a third of the elements on a
border cross it."""
_BORDER_FACTOR: Final = 8.0
"""Elements lie on borders if this many times more of them move at one rounding error than is in
proportion."""
_MOST_ON_BORDERS: Final = 1 / 128
"""Largest share of an output's elements that may lie on borders: one of each row."""


def allowed_codes(prepared: PreparedWorkload, output: int, elements: int) -> int:
    """Return how many of an output's elements may differ by one from what is expected.

    Raises:
        TaskInvalidError: the reference raises.
    """
    if prepared.code_shares is None:
        prepared.code_shares = _code_shares(prepared)
    share = prepared.code_shares[output]
    moved = min(_counted(_SAFETY * share.by_rounding, elements), int(_MOST_SHARE * elements))
    return max(moved, _counted(_BORDER_SAFETY * share.on_borders, elements))


def _counted(share: float, elements: int) -> int:
    """Return the most elements that chance makes of a share; 0 of none."""
    expected = share * elements
    return math.floor(1.0 + expected + _DEVIATIONS * math.sqrt(expected)) if expected else 0


def _code_shares(prepared: PreparedWorkload) -> tuple[CodeShare, ...]:
    """Return the shares of each output's elements; none where an error moves one by more than 1."""
    drawn = prepared.shared_set(PREPARATION_SEED)
    own = drawn.own()
    sizes = [output.numel() for output in own if not output.is_floating_point()]
    least, most = _RUNS
    runs = min(max(_ELEMENTS // max(*sizes, 1), least), most)
    moved, furthest = _moved(drawn, own, units=_UNITS, runs=runs)
    exactly, _ = _moved(drawn, own, units=_UNIT, runs=least)
    shares = []
    for index, output in enumerate(own):
        elements = output.numel()
        if furthest[index] != 1:
            shares.append(CodeShare())
            continue
        by_rounding = moved[index] / (runs * elements) * _UNIT / _UNITS
        at_once = exactly[index] / (least * elements)
        # As many as in proportion are chance, and where all results are whole, all lie on borders.
        has_borders = _BORDER_FACTOR * by_rounding < at_once <= _MOST_ON_BORDERS
        on_borders = at_once if has_borders else 0.0
        shares.append(CodeShare(by_rounding=by_rounding, on_borders=on_borders))
    return tuple(shares)


def _moved(
    drawn: InputSet, own: Sequence[torch.Tensor], *, units: float, runs: int
) -> tuple[list[int], list[int]]:
    """Return how many whole numbers of each output rounding moved in all runs, and how far."""
    counts, furthest = [0] * len(own), [0] * len(own)
    for seed in range(runs):
        with RoundingNoise(seed=seed, device=drawn.module.device, units=units):
            other = drawn.run()
        for index, (one, two) in enumerate(zip(own, other, strict=True)):
            if not one.is_floating_point() and one.numel():
                steps = (one.long() - two.long()).abs_()
                counts[index] += int(steps.count_nonzero())
                furthest[index] = max(furthest[index], int(steps.max()))
    return counts, furthest
