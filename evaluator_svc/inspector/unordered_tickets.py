"""Finds tickets without order: an atomic picks the last work-group, which reads the others' stores.

The atomic orders no other memory, and a path from the store to it has no fence. On a device that
shows the store later than the atomic, the reader gets the old value.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from evaluator_svc.inspector.kernel_flow import ANY_GROUP, Act, KernelFlow, Source, Step
from evaluator_svc.inspector.lowered_program import Space
from evaluator_svc.inspector.value_sources import ValueSources
from evaluator_svc.policy.finding import rule_finding
from kernel_foundry.domain.finding import Finding

_MAX_STORES: Final = 64
"""Stores that are followed to every ticket."""


def unordered_tickets(flow: KernelFlow, sources: ValueSources) -> Iterator[Finding]:
    """Iterate over a kernel's finding, at most one."""
    steps = list(flow.steps())
    read: set[int] = set()
    for block, step in steps:
        is_behind = _is_plain(step, Act.LOAD) and sources.of_guards(block, step) & Source.ORDER
        if is_behind and not sources.of(step.address) & ANY_GROUP:
            read |= sources.roots(step.address)
    if not read:
        return
    stores = 0
    for block, step in steps:
        if not _is_plain(step, Act.STORE) or read.isdisjoint(sources.roots(step.address)):
            continue
        guard = sources.of_guards(block, step)
        if guard & Source.ORDER or not sources.of(step.address) & ANY_GROUP:
            continue
        stores += 1
        if stores > _MAX_STORES:
            return
        if _is_unordered(flow, block, step):
            yield rule_finding(
                "object.unordered_ticket",
                "what work-groups store is read behind an atomic that does not order it",
                "put a fence for the whole device between the stores and the atomic, or let the "
                "atomic acquire and release",
                step.line,
            )
            return


def _is_plain(step: Step, act: Act) -> bool:
    return step.act is act and step.is_plain and step.space in (Space.GLOBAL, Space.GENERIC)


def _is_unordered(flow: KernelFlow, start: int, store: Step) -> bool:
    """Return whether every ticket behind a store is reached on some way without a fence."""
    steps = flow.blocks[start]
    position = next(i for i, step in enumerate(steps) if step is store)
    behind = steps[position + 1 :]
    reached = list(_until_fence(behind))
    tickets = {id(step) for step in reached if _is_ticket(step)}
    waiting = list(flow.successors[start]) if len(reached) == len(behind) else []
    seen: set[int] = set()
    while waiting:
        block = waiting.pop()
        if block in seen:
            continue
        seen.add(block)
        found = list(_until_fence(flow.blocks[block]))
        tickets |= {id(step) for step in found if _is_ticket(step)}
        if len(found) == len(flow.blocks[block]):
            waiting += flow.successors[block]
    every = {id(step) for _, step in flow.steps() if _is_ticket(step)}
    return bool(every) and every <= tickets


def _until_fence(steps: Iterable[Step]) -> Iterator[Step]:
    for step in steps:
        if step.act is Act.FENCE or step.orders:
            return
        yield step


def _is_ticket(step: Step) -> bool:
    """Return whether a step tells a work-group of others."""
    if step.space not in (Space.GLOBAL, Space.GENERIC) or not step.results:
        return False
    return step.act is Act.ATOMIC or (step.act is Act.LOAD and not step.is_plain)
