"""A direction is not given where the parent's verdict speaks against it."""

import pytest

from archive_svc.search.hints.opposition import is_opposed
from kernel_foundry.domain.finding import Finding, FindingKind, Severity
from kernel_foundry.domain.measures import Cell


def _findings(*kinds: FindingKind) -> tuple[Finding, ...]:
    return tuple(Finding(kind=k, severity=Severity.INFO, message="measured") for k in kinds)


@pytest.mark.parametrize(
    ("kind", "cell", "target"),
    [
        (FindingKind.MEMORY_BOUND, (3, 1, 1), (2, 1, 1)),
        (FindingKind.COMPUTE_BOUND, (2, 3, 1), (2, 2, 1)),
        (FindingKind.SPILL, (2, 2, 1), (3, 2, 1)),
        (FindingKind.OCCUPANCY, (1, 2, 1), (3, 2, 1)),  # two steps away
        (FindingKind.LAUNCH_BOUND, (1, 1, 2), (1, 1, 3)),
        (FindingKind.LATENCY_BOUND, (1, 1, 1), (2, 1, 0)),  # one of two dimensions
    ],
)
def test_what_was_measured_speaks_against_a_step(
    kind: FindingKind, cell: Cell, target: Cell
) -> None:
    assert is_opposed(_findings(FindingKind.TRAFFIC_BOUND, kind), cell, target)
    assert not is_opposed(_findings(FindingKind.TRAFFIC_BOUND), cell, target)
    assert not is_opposed(_findings(kind), cell, cell)


def test_the_reverse_of_an_opposed_step_is_open() -> None:
    assert not is_opposed(_findings(FindingKind.MEMORY_BOUND), (1, 1, 1), (2, 1, 1))
    assert not is_opposed(_findings(FindingKind.COMPUTE_BOUND), (1, 2, 1), (1, 3, 1))
