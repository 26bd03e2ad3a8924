"""Held-out workloads that we generate for a task whose sidecar names none.

Each workload changes all sizes at once:

* The first has odd sizes next to powers of two, most of them small, so that they keep no divisor of
  the timed sizes.
* The second keeps the divisors and has larger sizes than any timed workload, as far as that is
  cheap. Sizes for which it is not are larger in the first one.
* The third has odd sizes a little above the largest timed ones, and so tests the code that a kernel
  has for large sizes.

Numbers among forward's arguments change in the first, further in the second, and in one more as
far as they go. The same task always gets the same workloads. `long_axes.py` makes those with one
long axis.
"""

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from evaluator_svc.sizes.argument_numbers import PREFIX
from evaluator_svc.sizes.size_places import size_places
from kernel_foundry.domain.task import Size, Task, Workload
from kernel_foundry.domain.task_limits import LARGEST_SIZE
from kernel_foundry.task_source import parse_reference, size_constants

SMALL: Final = 16
"""Smaller sizes are more often strides and widths of kernels than extents."""
_ODD: Final = (31, 61, 17, 37, 47, 23, 29, 53, 19, 41, 43, 59)
"""Small sizes: primes next to powers of two, then other ones."""
_BLOCK: Final = 64
"""Largest divisor that is kept."""
_ROUNDED: Final = 4096
"""A larger size is beyond the next power of two up to here, since kernels are made for powers."""
_MOST_ELEMENTS: Final = 1 << 22
"""Largest product of all sizes in a small workload."""
_NEAR_SHARE: Final = 32
_NEAR: Final = 32
"""How many odd sizes above a timed one are considered: one for each 32 of it, at most `_NEAR`."""
_MUCH_LARGER: Final = 3
"""There is a third workload if the timed sizes' product is this many times that of the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeGroup:
    """Sizes that move together."""

    keys: tuple[str, ...]
    """Names of module-level sizes, or places of `size_places`."""
    value: int
    """The largest that is timed."""
    takes_odd: bool = True
    """Whether the module runs with odd values; else with multiples of what divides this one."""


def generated_workloads(
    groups: Sequence[SizeGroup],
    numbers: Sequence[Size] = (),
    beyond: Sequence[Sequence[Size]] = (),
) -> tuple[tuple[Workload, ...], ...]:
    """Return workloads of other sizes, each with the ways to have it, the best first.

    None where there is nothing to change.

    Args:
        groups: What can change.
        numbers: Other values of numbers among forward's arguments.
        beyond: Values of each of these that are further from the usual, the best first.
    """
    if not groups and not numbers:
        return ()
    larger = _larger_kept(groups)
    odd = _odd(groups, larger)
    smaller = smaller_kept(groups)
    few = [v if g.value >= SMALL else g.value for g, v in zip(groups, odd, strict=True)]
    alone = (
        [b if place == other else a for other, a in enumerate(smaller)]
        for place, b in enumerate(odd)
    )
    ways = (
        [
            workload_of(groups, odd, numbers),
            workload_of(groups, odd),
            workload_of(groups, few),
            *(workload_of(groups, values) for values in alone),
            *(workload_of(groups, smaller, [number]) for number in numbers),
        ],
        [
            *_with_numbers(groups, larger, beyond),
            *(workload_of(groups, values) for values in (larger, smaller) if groups),
        ],
    )
    timed = workload_of(groups, [group.value for group in groups])
    kept = (tuple(dict.fromkeys(w for w in several if w != timed)) for several in ways)
    return tuple(several for several in kept if several)


def further_numbers(
    groups: Sequence[SizeGroup], further: Sequence[Sequence[Size]]
) -> tuple[Workload, ...]:
    """Return the ways to have numbers among forward's arguments at their farthest, the best first.

    Args:
        groups: What can change; sizes are the largest that are cheap.
        further: Values of each argument, the best first.
    """
    sizes = (_larger_kept(groups), smaller_kept(groups))
    ways = (w for values in sizes for w in _with_numbers(groups, values, further))
    return tuple(dict.fromkeys(ways))


def _with_numbers(
    groups: Sequence[SizeGroup], values: Sequence[int], several: Sequence[Sequence[Size]]
) -> list[Workload]:
    """Return workloads in which all arguments change: by the best, the last, and each alone."""
    together = [[s[0] for s in several], [s[-1] for s in several]] if several else []
    alone = [[size] for sizes in several for size in sizes]
    return [workload_of(groups, values, numbers) for numbers in (*together, *alone)]


def beside_largest(task: Task, groups: Sequence[SizeGroup]) -> tuple[Workload, ...]:
    """Return the ways to have a workload a little above the largest timed sizes, the best first.

    Empty if the timed sizes are about as small as the generated ones.
    """
    values = [group.value for group in groups]
    if math.prod(values) <= _MUCH_LARGER * math.prod(_odd(groups, _larger_kept(groups))):
        return ()
    chance = random.Random(task.digest)
    near = [
        group.value + (_odd_step if group.takes_odd else _kept_step)(group.value, chance)
        for group in groups
    ]
    alone = (
        [b if place == other else a for other, a in enumerate(values)]
        for place, b in enumerate(near)
    )
    return tuple(dict.fromkeys(workload_of(groups, sizes) for sizes in (near, *alone)))


def generated_workload(task: Task, name: str) -> Workload | None:
    """Return the generated workload of the task that is called `name`; None if it has none.

    Raises:
        TaskInvalidError: the reference is no Python.
    """
    if any(workload.held_out for workload in task.workloads):
        return None
    tree = parse_reference(task.reference, file_name=task.name)
    known = {*size_constants(tree), *(place.key for place in size_places(tree))}
    sizes = []
    for part in name.split(","):
        key, _, value = part.rpartition("=")
        is_known = key in known or key.startswith(PREFIX)
        if not is_known or not value.isdecimal() or int(value) > LARGEST_SIZE:
            return None
        sizes.append(Size(name=key, value=int(value)))
    workload = _named(sizes)
    return workload if workload.name == name else None


def exceeded(groups: Iterable[SizeGroup], workloads: Iterable[Workload]) -> frozenset[str]:
    """Return the first keys of the groups that some workload exceeds."""
    most: dict[str, int] = {}
    for workload in workloads:
        for size in workload.sizes:
            most[size.name] = max(most.get(size.name, 0), size.value)
    return frozenset(g.keys[0] for g in groups if most.get(g.keys[0], 0) > g.value)


def _odd(groups: Sequence[SizeGroup], other: Sequence[int]) -> list[int]:
    """Return odd sizes, each another one, and larger than timed where `other` has no larger one."""
    taken: set[int] = set()
    values = []
    for group in groups:
        if not group.takes_odd:
            value = _kept_below(group.value, taken) or group.value
        elif group.value < SMALL:
            value = _odd_above(group.value, taken)
        else:
            value = next((n for n in _ODD if n < group.value and n not in taken), _ODD[0])
        taken.add(value)
        values.append(value)
    for place, (group, kept) in enumerate(zip(groups, other, strict=True)):
        if max(kept, values[place]) <= group.value:
            larger = _odd_above(group.value, taken) if group.takes_odd else _kept_above(group.value)
            if _fits([*values[:place], larger, *values[place + 1 :]]):
                values[place] = larger
                taken.add(larger)
    return values


def smaller_kept(groups: Sequence[SizeGroup]) -> list[int]:
    """Return smaller sizes that the same powers of two divide; the same where there is none."""
    taken: set[int] = set()
    values = []
    for group in groups:
        values.append(_kept_below(group.value, taken) or group.value)
        taken.add(values[-1])
    return values


def _larger_kept(groups: Sequence[SizeGroup]) -> list[int]:
    """Return sizes that the same powers of two divide, as many of them larger as cost little."""
    values = smaller_kept(groups)
    for place in sorted(range(len(groups)), key=lambda index: groups[index].value):
        larger = [*values[:place], _kept_above(groups[place].value), *values[place + 1 :]]
        if _fits(larger):
            values = larger
    return values


def kept_divisor(value: int) -> int:
    """Return the largest power of two that divides a size, of those that are kept."""
    return math.gcd(value, _BLOCK)


def _fits(values: Sequence[int]) -> bool:
    return math.prod(values) <= _MOST_ELEMENTS


def _rounded(value: int) -> int:
    """Return the next power of two, or the value itself where that would be much more."""
    return 1 << (value - 1).bit_length() if value <= _ROUNDED else value


def _odd_above(value: int, taken: set[int]) -> int:
    above = max(_rounded(value), 2) + 1
    above += 1 - above % 2
    return next(n for n in range(above, above + 2 * len(taken) + 1, 2) if n not in taken)


def _kept_above(value: int) -> int:
    block = kept_divisor(value)
    return _rounded(value) // block * block + block


def _kept_below(value: int, taken: set[int]) -> int:
    """Return a smaller size with its powers of two; 0 if there is none."""
    block = kept_divisor(value)
    odd = (n * block for n in range(1, value // block, 2))
    least = min(SMALL, value)
    return next((n for n in odd if n >= least and n not in taken), 0)


def _odd_step(value: int, chance: random.Random) -> int:
    """Return how much larger an odd size is."""
    step = chance.randrange(min(max(value // _NEAR_SHARE, 1), _NEAR))
    return 1 + value % 2 + 2 * step


def _kept_step(value: int, _: random.Random) -> int:
    return _kept_above(value) - value


def workload_of(
    groups: Sequence[SizeGroup], values: Sequence[int], numbers: Sequence[Size] = ()
) -> Workload:
    """Return the workload in which each group has its value, and arguments other numbers."""
    given: Mapping[str, int] = {
        key: value for group, value in zip(groups, values, strict=True) for key in group.keys
    }
    return _named([*(Size(name=key, value=value) for key, value in given.items()), *numbers])


def _named(sizes: Sequence[Size]) -> Workload:
    return Workload(
        name=",".join(f"{size.name}={size.value}" for size in sizes),
        sizes=tuple(sizes),
        held_out=True,
    )
