"""Memory that several work-groups read, change and write back without atomics: updates get lost.

Tells which dimensions of the grid no such update looks at; whether the grid has several work-groups
there, the launch plan says. Errs on the side of honesty: nothing is told where work-groups may take
turns, by an atomic or by how many there are.
"""

from evaluator_svc.inspector.kernel_flow import Act, KernelFlow, Source
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


def unordered_updates(flow: KernelFlow, sources: ValueSources) -> tuple[UnorderedUpdate, ...]:
    """Return a kernel's updates, those that are alike once; none where too much is unknown."""
    found = [a for a in shared_accesses(flow, sources) if not (a.place | a.guard) & TURNS]
    stores = [a for a in found if a.step.act is Act.STORE]
    if not stores:
        return ()
    waited = behind_waits(flow, sources)
    loads = [a for a in found if a.step.act is Act.LOAD and a.block not in waited]
    slices = ValueSlices(flow)
    updates: dict[UnorderedUpdate, None] = {}
    for load, store in pairs(loads, stores):
        update = _update(flow.name, load, store, sources, slices)
        if update is not None:
            updates[update] = None
    return tuple(updates)


def _update(
    kernel: str, load: Access, store: Access, sources: ValueSources, slices: ValueSlices
) -> UnorderedUpdate | None:
    if sources.roots(load.step.address) != sources.roots(store.step.address):
        return None
    is_same = is_one_place(load, store, sources)
    is_changed = slices.follow(store.step.inputs, load.step)
    is_alike = not sources.of(store.step.inputs) & ~Source.ARGUMENT
    if not is_changed and (is_alike or not is_same):
        return None  # of what all groups store alike nothing gets lost
    decided = load.guard | store.guard
    shared = shared_axes(load, store, decided, slices)
    if not shared:
        return None
    is_certain = (
        is_same and is_changed and not decided & ~Source.LANE and not is_apart(load, store, shared)
    )
    line = store.step.line
    return UnorderedUpdate(kernel=kernel, axes=shared, is_certain=is_certain, line=line)
