"""Updates of memory without atomics, in launches whose work-groups have the memory in common.

The object code tells which dimensions of the grid a kernel's updates do not look at, the bound plan
how many work-groups there are.
"""

from collections.abc import Iterable, Iterator

from evaluator_svc.messages.object_report import ObjectReport, UnorderedUpdate
from evaluator_svc.messages.runner import BoundWorkload, KernelGrid
from evaluator_svc.policy.finding import rule_finding, short
from kernel_foundry.domain.finding import Figure, Finding

_HINT = (
    "use an atomic of the device's scope, or store one number for each work-group and add them up "
    "in a second launch"
)
_AXES = "xyz"


def update_findings(launched: Iterable[tuple[ObjectReport, BoundWorkload]]) -> tuple[Finding, ...]:
    """Return what launches make of updates, for each kernel once: the certain before the others.

    Args:
        launched: For each workload that is bound, the report on the unit that it uses.
    """
    found: dict[tuple[str, str], Finding] = {}
    for report, bound in launched:
        for update in sorted(report.updates, key=lambda update: not update.is_certain):
            for finding in _findings(update, bound):
                found.setdefault((update.kernel, str(finding.line)), finding)
    return tuple(found.values())


def _findings(update: UnorderedUpdate, bound: BoundWorkload) -> Iterator[Finding]:
    for grid in bound.grids:
        axis = next((axis for axis in update.axes if grid.groups[axis] > 1), None)
        if grid.kernel == update.kernel and axis is not None:
            yield _finding(update, grid, axis)


def _finding(update: UnorderedUpdate, grid: KernelGrid, axis: int) -> Finding:
    count = grid.groups[axis]
    rule = "object.lost_update" if update.is_certain else "object.unordered_update"
    unless = "" if update.is_certain else ", unless they take turns"
    return rule_finding(
        rule,
        f"all {count} work-groups of {short(update.kernel)} along {_AXES[axis]} read, change and "
        f"write back the same memory without an atomic of the device's scope{unless}",
        _HINT,
        update.line,
        (Figure(name="group_count", value=float(count)),),
    )
