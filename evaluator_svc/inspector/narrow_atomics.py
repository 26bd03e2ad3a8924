"""Atomics that no other work-group is told of, at places that several of them have in common.

In the scope of a work-group an atomic may stay in the cache of one multiprocessor.
"""

from collections.abc import Iterator

from evaluator_svc.inspector.kernel_flow import Act, KernelFlow, Source
from evaluator_svc.inspector.shared_places import (
    TURNS,
    behind_waits,
    is_apart,
    shared_accesses,
    shared_axes,
)
from evaluator_svc.inspector.value_slices import ValueSlices
from evaluator_svc.inspector.value_sources import ValueSources
from evaluator_svc.messages.object_report import UnorderedUpdate


def narrow_atomics(flow: KernelFlow, sources: ValueSources) -> Iterator[UnorderedUpdate]:
    """Iterate over a kernel's atomics of this kind."""
    found = [
        access
        for access in shared_accesses(flow, sources, (Act.ATOMIC,))
        if access.step.is_narrow and not (access.place | access.guard) & TURNS
    ]
    if not found:
        return
    waited, slices = behind_waits(flow, sources), ValueSlices(flow)
    for access in found:
        axes = shared_axes(access, access, access.guard, slices)
        if axes and access.block not in waited:
            is_certain = not access.guard & ~Source.LANE and not is_apart(access, access, axes)
            yield UnorderedUpdate(
                kernel=flow.name, axes=axes, is_certain=is_certain, line=access.step.line
            )
