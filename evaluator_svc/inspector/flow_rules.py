"""The rules that follow a kernel's values: of work-groups, lanes and places in memory."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from evaluator_svc.inspector.absent_lanes import absent_lanes
from evaluator_svc.inspector.checked_stores import checked_stores
from evaluator_svc.inspector.kernel_flow import KernelFlow
from evaluator_svc.inspector.narrow_atomics import narrow_atomics
from evaluator_svc.inspector.short_places import short_places
from evaluator_svc.inspector.unordered_flags import unordered_flags
from evaluator_svc.inspector.unordered_tickets import unordered_tickets
from evaluator_svc.inspector.unordered_updates import unordered_updates
from evaluator_svc.inspector.value_sources import ValueSources
from evaluator_svc.messages.object_report import MOST_UPDATES, UnorderedUpdate
from kernel_foundry.domain.finding import Finding

_MOST_VISITS: Final = 500_000
"""Most visits of steps and branches of all kernels: 30 times those of any known candidate."""


@dataclass(frozen=True, slots=True)
class FlowReport:
    """The rules' findings in all kernels of a module."""

    findings: tuple[Finding, ...]
    """Each rule once."""
    updates: tuple[UnorderedUpdate, ...]


def flow_report(flows: Iterable[KernelFlow]) -> FlowReport:
    """Return the rules' findings; none for a kernel that is too tangled to follow."""
    findings: dict[str, Finding] = {}
    updates: dict[tuple[str, tuple[int, ...], bool], UnorderedUpdate] = {}
    left = _MOST_VISITS
    for flow in flows:
        sources = ValueSources(flow, left)
        left -= sources.visit_count
        if not sources.is_settled:
            continue
        # A plan can launch nothing of another name.
        if flow.name.isidentifier():
            for update in (
                *unordered_updates(flow, sources),
                *checked_stores(flow, sources),
                *narrow_atomics(flow, sources),
            ):
                updates.setdefault((update.kernel, update.axes, update.is_certain), update)
        for finding in (
            *unordered_tickets(flow, sources),
            *unordered_flags(flow, sources),
            *absent_lanes(flow, sources),
            *short_places(flow, sources),
        ):
            findings.setdefault(finding.rule, finding)
    told = sorted(updates.values(), key=lambda update: not update.is_certain)
    return FlowReport(tuple(findings.values()), tuple(told[:MOST_UPDATES]))
