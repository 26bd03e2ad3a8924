"""Memory that several work-groups read, change and write back without atomics: updates get lost.

Tells which dimensions of the grid no such update looks at; whether the grid has several work-groups
there, the launch plan says. Errs on the side of honesty: nothing is told where work-groups may take
turns, by an atomic or by how many there are.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from evaluator_svc.inspector.kernel_flow import GROUPS, Act, KernelFlow, Source, Step, is_bare
from evaluator_svc.inspector.lowered_program import Space
from evaluator_svc.inspector.value_sources import ValueSources
from evaluator_svc.messages.object_report import UnorderedUpdate

_TURNS: Final = Source.ORDER | Source.COUNT
"""What may say whose turn it is."""
_MAX_PAIRS: Final = 20_000
_MAX_VISITS: Final = 200_000


@dataclass(frozen=True, slots=True)
class _Access:
    """A load or store of global memory at a place that work-groups may have in common."""

    block: int
    step: Step
    place: Source
    guard: Source


def unordered_updates(flow: KernelFlow, sources: ValueSources) -> tuple[UnorderedUpdate, ...]:
    """Return a kernel's updates, those that are alike once; none where too much is unknown."""
    found = [a for a in _accesses(flow, sources) if not (a.place | a.guard) & _TURNS]
    stores = [a for a in found if a.step.act is Act.STORE]
    if not stores:
        return ()
    waited = _behind_waits(flow, sources)
    loads = [a for a in found if a.step.act is Act.LOAD and a.block not in waited]
    slices = _Slices(flow)
    updates: dict[UnorderedUpdate, None] = {}
    pairs = 0
    for store in stores:
        for load in loads:
            pairs += 1
            if pairs > _MAX_PAIRS:
                return tuple(updates)
            update = _update(flow.name, load, store, sources, slices)
            if update is not None:
                updates[update] = None
    return tuple(updates)


def _accesses(flow: KernelFlow, sources: ValueSources) -> Iterator[_Access]:
    for block, step in flow.steps():
        if step.act not in (Act.LOAD, Act.STORE) or step.space not in (Space.GLOBAL, Space.GENERIC):
            continue
        if not sources.roots(step.address):
            continue
        place = sources.of(step.address)
        if not place & Source.CHOSEN:
            yield _Access(block, step, place, sources.of_guards(block, step))


def _update(
    kernel: str, load: _Access, store: _Access, sources: ValueSources, slices: "_Slices"
) -> UnorderedUpdate | None:
    if sources.roots(load.step.address) != sources.roots(store.step.address):
        return None
    is_one_place = (load.step.address, load.step.offset) == (
        store.step.address,
        store.step.offset,
    ) and sources.is_single(load.step.address)
    is_changed = slices.uses(store.step, load.step)
    if not (is_one_place or is_changed):
        return None
    decided = load.guard | store.guard
    apart = load.place | store.place
    places = (*load.step.address, *store.step.address)
    shared = tuple(
        axis
        for axis, group in enumerate(GROUPS)
        if not decided & group and (not apart & group or slices.is_quotient(places, group))
    )
    if not shared:
        return None
    is_certain = (
        is_one_place
        and is_changed
        and not decided & ~Source.LANE
        and not any(apart & GROUPS[axis] for axis in shared)
    )
    line = store.step.line
    return UnorderedUpdate(kernel=kernel, axes=shared, is_certain=is_certain, line=line)


def _behind_waits(flow: KernelFlow, sources: ValueSources) -> set[int]:
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


class _Slices:
    """What stored values are computed from."""

    def __init__(self, flow: KernelFlow) -> None:
        self._made: dict[int, list[Step]] = {}
        for _, step in flow.steps():
            for result in step.results:
                self._made.setdefault(result, []).append(step)
        self._known: dict[int, frozenset[int]] = {}
        self._left = _MAX_VISITS

    def uses(self, store: Step, load: Step) -> bool:
        """Return whether what is stored follows from what is loaded."""
        return not self._loaded(store).isdisjoint(load.results)

    def is_quotient(self, values: tuple[int, ...], group: Source) -> bool:
        """Return whether the number of a group counts in values only once it was divided.

        The first two groups then have the values in common.
        """
        pending, seen = list(values), set(values)
        while pending:
            self._left -= 1
            for step in self._made.get(pending.pop(), ()):
                if step.source & group or self._left < 0:
                    return False
                if step.quotient > 1 and step.inputs and is_bare(step.inputs[0], group, self._made):
                    continue
                new = [value for value in step.inputs if value not in seen]
                pending += new
                seen.update(new)
        return True

    def _loaded(self, store: Step) -> frozenset[int]:
        key = id(store)
        if key not in self._known:
            self._known[key] = frozenset(self._behind(store.inputs))
        return self._known[key]

    def _behind(self, values: tuple[int, ...]) -> set[int]:
        pending, seen = list(values), set(values)
        while pending and self._left > 0:
            self._left -= 1
            for step in self._made.get(pending.pop(), ()):
                new = [value for value in step.inputs if value not in seen]
                pending += new
                seen.update(new)
        return seen
