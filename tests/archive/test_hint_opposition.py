"""A direction is not given where the parent's verdict speaks against it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from archive_svc.archive import LocalArchive
from archive_svc.search.directions.opposition import is_opposed
from kernel_foundry.domain.archive import RunSpec
from kernel_foundry.domain.candidate import Candidate, Operator
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.finding import Finding, FindingKind, Severity
from kernel_foundry.domain.measures import Cell, Measures

Make = Callable[..., tuple[Candidate, Evaluation]]


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


async def test_an_archive_gives_no_direction_against_the_parents_verdict(
    spec: RunSpec, make: Make, tmp_path: Path
) -> None:
    """Children that went up in memory got better; a parent that spills is not sent there."""
    directions: dict[str, set[Measures | None]] = {}
    for name, kind in (("free", FindingKind.TRAFFIC_BOUND), ("spills", FindingKind.SPILL)):
        archive = LocalArchive(f"sqlite:///{tmp_path / name}.db")
        await archive.create_run(replace(spec, strategy="gradient"))
        parent, verdict = make("parent", median_ns=900.0, cell=(2, 1, 1))
        verdict = replace(verdict, findings=_findings(kind))
        await archive.add("first", parent, verdict, request_id="parent")
        for number in range(6):
            child, better = make(f"child {number}", median_ns=700.0, cell=(3, 1, 1))
            child = replace(child, parents=(parent.digest,), operator=Operator.MUTATE)
            await archive.add("first", child, better, request_id=child.digest)
        found = directions[name] = set()
        for _ in range(400):
            selection = await archive.select("first")
            if selection.parent is not None and selection.parent.candidate == parent:
                found.add(selection.target)
                assert bool(selection.hint) == (selection.target is not None)
            await archive.drop_selection("first", selection.sequence)
        await archive.close()
    up = Measures(memory=3, algorithm=1, synchronization=1)
    assert up in directions["free"]
    assert directions["spills"] == {None}
