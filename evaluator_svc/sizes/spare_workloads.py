"""Generated workloads for plans that do not take the others: near the timed sizes in what divides.

A plan may ask for whole blocks of hundreds, or for sizes in a range around the timed ones. Halves,
one more block and multiples of the timed sizes are what such a plan takes if it takes any other.
One that asks for whole blocks on every side takes no tiny sizes, and so none of the workloads with
one long axis: it gets one axis as long beside small multiples.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from evaluator_svc.sizes.generated_workloads import SizeGroup, kept_divisor, workload_of
from evaluator_svc.sizes.long_axes import long_beside_kept
from kernel_foundry.domain.task import Workload

_AXES: Final = 2
"""Longest axes of which each changes alone."""
_TIMES: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SpareWorkload:
    """A workload, and how far its sizes are from timed ones."""

    workload: Workload
    is_near: bool
    """Whether no size is much larger than timed: it is as well conditioned as that."""
    is_long: bool = False
    """Whether one axis is several times the largest timed one."""


def spare_workloads(groups: Sequence[SizeGroup]) -> tuple[SpareWorkload, ...]:
    """Return the workloads, the smallest first; none where nothing can change."""
    timed = [group.value for group in groups]
    order = sorted(range(len(groups)), key=lambda place: -timed[place])
    found: dict[tuple[int, ...], bool] = {}

    def add(values: Sequence[int], *, is_near: bool) -> None:
        if list(values) != timed:
            found.setdefault(tuple(values), is_near)

    add([_half(value) for value in timed], is_near=True)
    for place in order[:_AXES]:
        value = timed[place]
        for other, is_near in (
            (_half(value), True),
            (_next_block(value), True),
            (_TIMES * value, False),
        ):
            add([*timed[:place], other, *timed[place + 1 :]], is_near=is_near)
    add([_TIMES * value for value in timed], is_near=False)
    spares = [
        SpareWorkload(workload=workload_of(groups, values), is_near=found[values])
        for values in sorted(found, key=math.prod)
    ]
    spares += (
        SpareWorkload(workload=workload, is_near=False, is_long=True)
        for place in order[:_AXES]
        if (workload := long_beside_kept(groups, place)) is not None
    )
    return tuple(spares)


def _half(value: int) -> int:
    return value // 2 if value % 2 == 0 else value


def _next_block(value: int) -> int:
    return value + kept_divisor(value)
