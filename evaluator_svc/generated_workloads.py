"""Held-out workloads that a task has by itself, where its sidecar names none.

Sizes of a task file are given other values. One workload breaks every divisibility that the timed
sizes have, by primes next to powers of two; one keeps the divisibilities and is smaller. Both are
small, so that judging on them costs little. A third one lies beside the largest timed one, with odd
sizes a little below its own: what a kernel does for large sizes alone shows there. Sizes below 16
stay: they are strides and widths of kernels more often than extents. Whether a module runs with
them is for admission to find out, so there are several ways to each. The same task has the same
workloads.
"""

import math
import random
from collections.abc import Mapping
from typing import Final

from kernel_foundry.domain.task import Size, Task, Workload
from kernel_foundry.task_source import parse_reference, size_constants

_LEAST: Final = 16
"""Sizes below stay as they are."""
_LONGEST: Final = 1025
"""For the largest size where that is larger: a block of 1024, and one element."""
_ODD: Final = (257, 127, 31, 61, 17, 37, 97, 67)
"""For the others: primes next to powers of two, then other ones."""
_BLOCK: Final = 64
"""Most of a divisibility that is kept."""
_NEAR_SHARE: Final = 32
_NEAR: Final = 32
"""Odd sizes in question beside a larger one: one for each 32 of it, so many at most."""
_MUCH_LARGER: Final = 3
"""Times the product of the small generated sizes, from which on a timed one has one beside it."""


def generated_workloads(task: Task) -> tuple[tuple[Workload, ...], ...]:
    """Return held-out workloads of other sizes, each with the ways to have it, the best first.

    None where the task has held-out ones itself, or no sizes.

    Raises:
        TaskInvalidError: the reference is no Python.
    """
    if any(workload.held_out for workload in task.workloads):
        return ()
    tree = parse_reference(task.reference, file_name=task.name)
    timed = size_constants(tree) | {s.name: s.value for s in task.workloads[0].sizes}
    large = {name: value for name, value in timed.items() if value >= _LEAST}
    if not 0 < len(large) <= len(_ODD):
        return ()
    kept = _kept(large)
    ways = (
        (_odd(large), _odd_alike(large), *({**kept, name: _ODD[1]} for name in large)),
        (kept,),
    )
    known = {_key(timed, {s.name: s.value for s in w.sizes}) for w in task.workloads}
    named = (
        tuple(_workload(sizes) for sizes in several if _key(timed, sizes) not in known)
        for several in ways
    )
    return tuple(tuple(dict.fromkeys(several)) for several in named if several)


def beside_largest(task: Task) -> tuple[Workload, ...]:
    """Return the ways to have a held-out workload beside the largest timed one, the best first.

    None where `generated_workloads` has none, or where they are about as large themselves.

    Raises:
        TaskInvalidError: the reference is no Python.
    """
    small = generated_workloads(task)
    if not small:
        return ()
    own = size_constants(parse_reference(task.reference, file_name=task.name))
    timed = [own | {s.name: s.value for s in workload.sizes} for workload in task.workloads]
    largest = max(timed, key=lambda sizes: math.prod(sizes.values()))
    most = max(
        math.prod((own | {s.name: s.value for s in workload.sizes}).values())
        for ways in small
        for workload in ways
    )
    if math.prod(largest.values()) <= _MUCH_LARGER * most:
        return ()
    chance = random.Random(task.digest)
    large = {name: value for name, value in largest.items() if value >= _LEAST}
    odd = {name: _odd_below(value, chance) for name, value in large.items()}
    first = {value: name for name, value in reversed(list(large.items()))}
    ways = (
        large | odd,
        {name: odd[first[value]] for name, value in large.items()},
        *(large | {name: odd[name]} for name in large),
    )
    return tuple(dict.fromkeys(_workload(sizes) for sizes in ways))


def generated_workload(task: Task, name: str) -> Workload | None:
    """Return the one that is called `name`, in whichever way.

    Raises:
        TaskInvalidError: the reference is no Python.
    """
    several = (workload for ways in generated_workloads(task) for workload in ways)
    found = (w for w in (*several, *beside_largest(task)) if w.name == name)
    return next(found, None)


def _odd_below(value: int, chance: random.Random) -> int:
    """Return an odd size a little below another."""
    step = chance.randrange(min(max(value // _NEAR_SHARE, 1), _NEAR))
    return value - 1 - value % 2 - 2 * step


def _odd(sizes: Mapping[str, int]) -> dict[str, int]:
    """Return sizes that no power of two divides, each another one; none is larger."""
    free = list(_ODD)
    chosen: dict[str, int] = {}
    for name, value in sorted(sizes.items(), key=lambda item: -item[1]):
        if not chosen and value > _LONGEST:
            chosen[name] = _LONGEST
            continue
        chosen[name] = next((n for n in free if n < value), free[-1])
        free.remove(chosen[name])
    return {name: chosen[name] for name in sizes}


def _kept(sizes: Mapping[str, int]) -> dict[str, int]:
    """Return smaller sizes that the same powers of two divide; equal ones stay equal."""
    chosen: dict[int, int] = {}
    for value in sorted(set(sizes.values()), reverse=True):
        block = math.gcd(value, _BLOCK)
        odd = range(1, value // block, 2)
        smaller = (n * block for n in odd if n * block >= _LEAST)
        chosen[value] = next((n for n in smaller if n not in chosen.values()), value)
    return {name: chosen[value] for name, value in sizes.items()}


def _odd_alike(sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the odd sizes, where equal ones stay equal."""
    first = {value: name for name, value in reversed(list(sizes.items()))}
    odd = _odd({name: value for value, name in first.items()})
    return {name: odd[first[value]] for name, value in sizes.items()}


def _workload(sizes: Mapping[str, int]) -> Workload:
    return Workload(
        name=",".join(f"{name}={value}" for name, value in sizes.items()),
        sizes=tuple(Size(name=name, value=value) for name, value in sizes.items()),
        held_out=True,
    )


def _key(timed: Mapping[str, int], sizes: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted({**timed, **sizes}.items()))
