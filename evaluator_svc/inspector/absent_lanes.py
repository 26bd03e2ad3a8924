"""Exchanges among lanes, and barriers, that some of the lanes do not come to."""

from collections.abc import Iterator, Mapping
from typing import Final

from evaluator_svc.inspector.control_dependence import deciding_blocks
from evaluator_svc.inspector.kernel_flow import KernelFlow, Source, Step, is_bare
from evaluator_svc.inspector.value_sources import ValueSources
from evaluator_svc.policy.finding import rule_finding
from kernel_foundry.domain.finding import Finding

_SUB_GROUP: Final = 32
"""A branch that whole multiples of so many neighbours take parts no sub-group."""


def absent_lanes(flow: KernelFlow, sources: ValueSources) -> Iterator[Finding]:
    """Iterate over a kernel's finding, at most one."""
    meetings = [(block, step) for block, step in flow.steps() if step.meets]
    if not meetings:
        return
    left = _left_loops(flow, sources)
    apart = _parting_branches(flow)
    for block, step in meetings:
        if block in left or block in apart:
            where = "a loop whose end" if block in left else "a branch that"
            yield rule_finding(
                "object.absent_lanes",
                f"lanes wait for each other or exchange values in {where} depends on the lane: "
                "some take no part",
                "let all lanes of the sub-group come there, and give those without work a neutral "
                "value",
                step.line,
            )
            return


def _left_loops(flow: KernelFlow, sources: ValueSources) -> set[int]:
    """Return the blocks of loops that lanes leave after different numbers of turns."""
    left: set[int] = set()
    for loop in flow.loops:
        ends = (
            flow.decides[block]
            for block in loop.blocks
            if any(target not in loop.blocks for target in flow.successors[block])
        )
        if any(sources.of(values) & Source.LANE for values in ends):
            left |= loop.blocks
    return left


def _parting_branches(flow: KernelFlow) -> set[int]:
    """Return the blocks that only some lanes of a sub-group come to."""
    made: dict[int, list[Step]] = {}
    for _, step in flow.steps():
        for result in step.results:
            made.setdefault(result, []).append(step)
    parting = {
        block
        for block, values in flow.decides.items()
        if any(_parts(value, made) for value in values)
    }
    found: set[int] = set()
    if parting:
        deciding = deciding_blocks(flow.successors) or {}
        for block, deciders in deciding.items():
            if not parting.isdisjoint(deciders):
                found.add(block)
    return found


def _parts(condition: int, made: Mapping[int, list[Step]]) -> bool:
    """Return whether a condition is whether a lane is below a number that parts a sub-group."""
    several = made.get(condition, ())
    if len(several) != 1 or several[0].bound % _SUB_GROUP == 0 or not several[0].inputs:
        return False
    return is_bare(several[0].inputs[0], Source.LANE, made)
