"""Finds flags without order: a work-group waits for one, then reads data that another one stored.

The flag may be seen before the number: where the one who stores both has no release between them,
and where the one who waits has no acquire between the flag and the number.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from evaluator_svc.inspector.kernel_flow import ANY_GROUP, Act, KernelFlow, Source, Step
from evaluator_svc.inspector.lowered_program import Space
from evaluator_svc.inspector.value_sources import ValueSources
from evaluator_svc.policy.finding import rule_finding
from kernel_foundry.domain.finding import Finding

_MAX_STORES: Final = 64
"""Stores that are followed to every flag."""
_MAX_VISITS: Final = 300_000
"""Most visits of steps on all paths; a kernel that needs more is too tangled."""
_OWN: Final = ANY_GROUP | Source.ORDER
"""Sources by which a place that belongs to one work-group differs."""


def unordered_flags(flow: KernelFlow, sources: ValueSources) -> Iterator[Finding]:
    """Iterate over a kernel's finding, at most one."""
    stores = [
        _Store(block, position, step)
        for block, steps in flow.blocks.items()
        for position, step in enumerate(steps)
        if _is_plain(step, Act.STORE) and sources.of(step.address) & _OWN
    ][:_MAX_STORES]
    waits = list(_waits(flow, sources)) if stores else []
    ways = _Ways(flow)
    for wait in waits:
        # Behind another one that acquires, that one orders.
        read = [s for s in ways.behind(wait.exits, stops=_is_meeting) if _is_plain(s, Act.LOAD)]
        at_once = [] if wait.acquires else ways.behind(wait.exits, stops=_acquires)
        unordered = {id(step) for step in at_once}
        for store in stores:
            if store.block in wait.blocks:
                continue  # the loop fetches work for its own group
            others = [step for step in read if _is_of_another(step, store.step, sources)]
            if not others:
                continue
            shown = ways.behind((store.block,), store.position + 1, stops=_releases)
            is_shown_at_once = any(
                _is_shown(step) and not wait.flags.isdisjoint(sources.roots(step.address))
                for step in shown
            )
            if ways.is_lost:
                return
            if is_shown_at_once or any(id(step) in unordered for step in others):
                yield rule_finding(
                    "object.unordered_ticket",
                    "what a work-group stores is read by another one that waits for a flag, and "
                    "the flag does not order it",
                    "store the flag with release and load it with acquire, for the whole device, "
                    "or put a fence before the store of the flag and after the load",
                    store.step.line,
                )
                return


@dataclass(frozen=True, slots=True)
class _Store:
    """A store of a number that others may wait for."""

    block: int
    position: int
    step: Step


@dataclass(frozen=True, slots=True)
class _Wait:
    """A loop that ends by what other work-groups do."""

    blocks: frozenset[int]
    exits: tuple[int, ...]
    """Blocks that follow it."""
    flags: frozenset[int]
    """Buffers that it looks into."""
    acquires: bool
    """Whether each look orders what follows."""


def _waits(flow: KernelFlow, sources: ValueSources) -> Iterator[_Wait]:
    for loop in flow.loops:
        exits = tuple(
            target
            for block in loop.blocks
            if sources.of(flow.decides[block]) & Source.ORDER
            for target in flow.successors[block]
            if target not in loop.blocks
        )
        looks = [s for block in loop.blocks for s in flow.blocks[block] if _is_look(s)]
        if exits and looks:
            roots = (sources.roots(look.address) for look in looks)
            acquires = all(look.orders or look.acquires for look in looks)
            yield _Wait(loop.blocks, exits, frozenset[int]().union(*roots), acquires)


class _Ways:
    """Steps that control may come to."""

    def __init__(self, flow: KernelFlow) -> None:
        self._flow = flow
        self._left = _MAX_VISITS

    @property
    def is_lost(self) -> bool:
        """Whether there were too many."""
        return self._left < 0

    def behind(
        self,
        blocks: tuple[int, ...],
        first: int = 0,
        *,
        stops: Callable[[Step], bool] | None = None,
    ) -> list[Step]:
        """Return the steps on all ways from blocks on, without those that stop one.

        Args:
            blocks: Where ways begin…
            first: …at the step of this number.
            stops: Whether no way goes on behind a step.
        """
        found: list[Step] = []
        waiting, seen = [(block, first) for block in blocks], set[int]()
        while waiting and not self.is_lost:
            block, start = waiting.pop()
            if block in seen:
                continue
            if not start:
                seen.add(block)
            steps = self._flow.blocks[block][start:]
            stop = next((i for i, s in enumerate(steps) if stops is not None and stops(s)), None)
            self._left -= len(steps) + 1
            found += steps[:stop]
            if stop is None:
                waiting += [(target, 0) for target in self._flow.successors[block]]
        return found


def _is_global(step: Step) -> bool:
    return step.space in (Space.GLOBAL, Space.GENERIC)


def _is_plain(step: Step, act: Act) -> bool:
    return step.act is act and step.is_plain and _is_global(step)


def _is_look(step: Step) -> bool:
    """Return whether a step tells a work-group what others did."""
    is_atomic = step.act is Act.ATOMIC and bool(step.results)
    return _is_global(step) and (is_atomic or (step.act is Act.LOAD and not step.is_plain))


def _is_meeting(step: Step) -> bool:
    return (step.orders or step.acquires) and _is_look(step)


def _is_shown(step: Step) -> bool:
    """Return whether others see at once what a step stores."""
    is_store = step.act is Act.STORE and not step.is_plain
    return _is_global(step) and (is_store or step.act is Act.ATOMIC)


def _releases(step: Step) -> bool:
    return step.act is Act.FENCE or step.orders


def _acquires(step: Step) -> bool:
    # A barrier of the group, too: of whoever has but one item look and all read behind it.
    return step.acquires or step.orders or step.meets


def _is_of_another(load: Step, store: Step, sources: ValueSources) -> bool:
    """Return whether a load is of the buffer of a store, and not surely of its place."""
    is_same = (load.address, load.offset) == (store.address, store.offset)
    is_own = is_same and sources.is_single(load.address)
    return not is_own and not sources.roots(load.address).isdisjoint(sources.roots(store.address))
