"""Accesses to global memory at places that work-groups may have in common."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from evaluator_svc.inspector.kernel_flow import GROUPS, Act, KernelFlow, Source, Step
from evaluator_svc.inspector.lowered_program import Space
from evaluator_svc.inspector.value_slices import ValueSlices
from evaluator_svc.inspector.value_sources import ValueSources

TURNS: Final = Source.ORDER | Source.COUNT
"""Sources that may decide whose turn it is."""
_MAX_PAIRS: Final = 20_000


@dataclass(frozen=True, slots=True)
class Access:
    """A load, a store or an atomic."""

    block: int
    step: Step
    place: Source
    """Sources by which the place may differ."""
    guard: Source
    """Sources that may decide whether the access is made."""


def shared_accesses(
    flow: KernelFlow, sources: ValueSources, acts: Sequence[Act] = (Act.LOAD, Act.STORE)
) -> Iterator[Access]:
    """Iterate over those of a kernel at places that no number of memory decides."""
    for block, step in flow.steps():
        if step.act not in acts or step.space not in (Space.GLOBAL, Space.GENERIC):
            continue
        if not sources.roots(step.address):
            continue
        place = sources.of(step.address)
        if not place & Source.CHOSEN:
            yield Access(block, step, place, sources.of_guards(block, step))


def pairs(loads: Sequence[Access], stores: Iterable[Access]) -> Iterator[tuple[Access, Access]]:
    """Iterate over the pairs of a load and a store that are compared, up to a limit."""
    found = ((load, store) for store in stores for load in loads)
    return itertools.islice(found, _MAX_PAIRS)


def is_one_place(load: Access, store: Access, sources: ValueSources) -> bool:
    """Return whether a load and a store are surely of the same place."""
    places = [(access.step.address, access.step.offset) for access in (load, store)]
    return places[0] == places[1] and sources.is_single(load.step.address)


def shared_axes(load: Access, store: Access, guard: Source, slices: ValueSlices) -> tuple[int, ...]:
    """Return the dimensions of the grid whose work-groups have both places in common.

    Args:
        load: One access.
        store: The other one.
        guard: What decides whether a group comes to both.
        slices: Of the kernel's values.
    """
    apart = load.place | store.place
    places = (*load.step.address, *store.step.address)
    return tuple(
        axis
        for axis, group in enumerate(GROUPS)
        if not guard & group and (not apart & group or slices.is_quotient(places, group))
    )


def is_apart(load: Access, store: Access, axes: tuple[int, ...]) -> bool:
    """Return whether the numbers of groups along some dimensions count in a place."""
    return any((load.place | store.place) & GROUPS[axis] for axis in axes)


def behind_waits(flow: KernelFlow, sources: ValueSources) -> set[int]:
    """Return the blocks behind a loop that ends by what other work-groups do."""
    waiting: list[int] = []
    for loop in flow.loops:
        for block in loop.blocks:
            leaves = [t for t in flow.successors[block] if t not in loop.blocks]
            if leaves and sources.of(flow.decides[block]) & Source.ORDER:
                waiting += leaves
    found = set(waiting)
    while waiting:
        for block in flow.successors[waiting.pop()]:
            if block not in found:
                found.add(block)
                waiting.append(block)
    return found
