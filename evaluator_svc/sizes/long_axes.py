"""Generated workloads with one long axis, several times the largest timed one, and tiny sizes.

The tiny sizes are 1 to 7. The first size, which is the batch's in most modules, is 1 unless it is
the long one.

Only these workloads find kernels that read a whole step before they check for a row's end, or that
look at no more of an axis than is timed. The long size is a multiple of the timed one, so that a
plan that needs whole blocks takes it.
"""

import math
import random
from collections.abc import Sequence
from typing import Final

from evaluator_svc.sizes.generated_workloads import (
    SizeGroup,
    kept_divisor,
    smaller_kept,
    workload_of,
)
from kernel_foundry.domain.task import Task, Workload

_TINY: Final = tuple(range(1, 8))
_LEAST_GROUP: Final = 3
"""Least tiny size of the second choice, which is taken if the first leaves too little to
compare."""
LONGER: Final = 5
_TIMES: Final = (LONGER, 2)
"""Multiples of the largest timed size, the best first."""
_AXES: Final = 2
_CHEAP: Final = 1 << 24
"""Cube of a long size that costs little, whatever the reference does with it."""


def long_axis_workloads(
    task: Task, groups: Sequence[SizeGroup]
) -> tuple[tuple[Workload, ...], ...]:
    """Return workloads for the longest axis and for others, each with the ways to have it.

    The best way comes first: where it is cheap, all axes but the longest are long in the second
    workload. For the second axis, or if there is a single one, the last way has tiny sizes alone.
    The same task always gets the same workloads.
    """
    if not groups:
        return ()
    chance = random.Random(task.digest)
    tiny = [_tiny(groups, chance, least) for least in (_TINY[0], _LEAST_GROUP)]
    order = sorted(range(len(groups)), key=lambda place: -groups[place].value)
    axes = [_with_long(groups, [place], tiny) for place in order[:_AXES]]
    axes = [*axes, []] if len(axes) < _AXES else axes
    # All further axes at once, where that is cheap: each is long somewhere.
    axes[-1] = _with_long(groups, order[1:], tiny) + axes[-1] if order[_AXES:] else axes[-1]
    axes[-1] += [workload_of(groups, values) for values in tiny]
    timed = workload_of(groups, [group.value for group in groups])
    kept = (tuple(dict.fromkeys(w for w in ways if w != timed)) for ways in axes)
    return tuple(ways for ways in kept if ways)


def long_beside_kept(groups: Sequence[SizeGroup], place: int) -> Workload | None:
    """Return a workload with one long axis beside small sizes that timed powers of two divide.

    None where nothing else can change.
    """
    values = smaller_kept(groups)
    values[place] = LONGER * groups[place].value
    return workload_of(groups, values) if len(groups) >= _AXES else None


def _with_long(
    groups: Sequence[SizeGroup], places: Sequence[int], tiny: Sequence[Sequence[int]]
) -> list[Workload]:
    ways = []
    may_be_one = 0 not in places and groups[0].takes_odd
    of_one = [[1, *values[1:]] for values in tiny] if may_be_one else []
    for times in _TIMES:
        for values in (*of_one, *tiny, smaller_kept(groups)):
            several = list(values)
            for place in places:
                several[place] = times * groups[place].value
            if all(_costs_little(groups, several, place) for place in places):
                ways.append(workload_of(groups, several))
    return ways


def _costs_little(groups: Sequence[SizeGroup], values: Sequence[int], place: int) -> bool:
    """Return whether a reference that is quadratic in the long size does no more than timed."""
    timed = math.prod(group.value for group in groups) * groups[place].value
    return math.prod(values) * values[place] <= timed or values[place] ** 3 <= _CHEAP


def _tiny(groups: Sequence[SizeGroup], chance: random.Random, least: int) -> list[int]:
    """Return tiny sizes, as different as can be; what divides a size where odd ones do not run."""
    order: list[int] = []
    values = []
    for group in groups:
        if not group.takes_odd:
            values.append(kept_divisor(group.value))
            continue
        if not order:
            order = [n for n in chance.sample(_TINY, len(_TINY)) if n >= least]
        values.append(next((n for n in order if n != group.value), order[0]))
        order.remove(values[-1])
    return values
