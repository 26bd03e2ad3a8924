"""Stores that a load of the same place decides: a maximum of all work-groups without an atomic.

Two work-groups that look at once both store, and the smaller number may be the last. As in
`unordered_updates.py` nothing is told where work-groups may take turns, nor where all of them would
store the same.
"""

from evaluator_svc.inspector.kernel_flow import ANY_GROUP, Act, KernelFlow, Source
from evaluator_svc.inspector.shared_places import (
    TURNS,
    Access,
    behind_waits,
    is_apart,
    is_one_place,
    pairs,
    shared_accesses,
    shared_axes,
)
from evaluator_svc.inspector.value_slices import ValueSlices
from evaluator_svc.inspector.value_sources import ValueSources
from evaluator_svc.messages.object_report import UnorderedUpdate

_OWN: Source = ANY_GROUP | Source.CHOSEN
"""Sources by which a number differs from work-group to work-group."""


def checked_stores(flow: KernelFlow, sources: ValueSources) -> tuple[UnorderedUpdate, ...]:
    """Return a kernel's stores of this kind as updates, those that are alike once."""
    waited = behind_waits(flow, sources)
    found = [
        access
        for access in shared_accesses(flow, sources)
        if access.block not in waited and not access.place & TURNS
    ]
    loads = [a for a in found if a.step.act is Act.LOAD and not a.guard & TURNS]
    stores = [a for a in found if a.step.act is Act.STORE and sources.of(a.step.inputs) & _OWN]
    if not loads or not stores:
        return ()
    slices = ValueSlices(flow)
    updates: dict[UnorderedUpdate, None] = {}
    for load, store in pairs(loads, stores):
        if not is_one_place(load, store, sources):
            continue
        rest = _rest_of_guard(flow, load, store, sources, slices)
        if rest is None or rest & TURNS:
            continue
        axes = shared_axes(load, store, load.guard | rest, slices)
        if axes:
            is_certain = not (load.guard | rest) & ~Source.LANE and not is_apart(load, store, axes)
            update = UnorderedUpdate(
                kernel=flow.name, axes=axes, is_certain=is_certain, line=store.step.line
            )
            updates[update] = None
    return tuple(updates)


def _rest_of_guard(
    flow: KernelFlow, load: Access, store: Access, sources: ValueSources, slices: ValueSlices
) -> Source | None:
    """Return the sources beside a load that decide about a store; None if the load does not."""
    rest = Source.NOTHING
    is_checked = slices.follow(store.step.condition, load.step)
    if not is_checked:
        rest |= sources.of(store.step.condition)
    pending, seen = [store.block], {store.block}
    while pending:
        for block in sources.deciders(pending.pop()):
            if block in seen:
                continue
            seen.add(block)
            pending.append(block)
            if slices.follow(flow.decides[block], load.step):
                is_checked = True
            else:
                rest |= sources.of(flow.decides[block])
    return rest if is_checked else None
