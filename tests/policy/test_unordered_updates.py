"""Additions of several work-groups without atomics: what the object code tells, and the launch."""

from pathlib import Path

import pytest

from evaluator_svc.inspector import inspect_ptx, inspect_spirv
from evaluator_svc.messages.object_report import ObjectReport, UnorderedUpdate
from evaluator_svc.messages.runner import BoundWorkload, KernelGrid
from evaluator_svc.pipeline.build.unordered_updates import update_findings
from kernel_foundry.domain.finding import Finding
from tests.behaviour import nvrtc

KERNELS = Path(__file__).parent / "kernels"
WITH_NVRTC = pytest.mark.skipif(bool(nvrtc.absence()), reason=nvrtc.absence() or "NVRTC is there")
X, Y, Z = range(3)
LOST = {
    "plainly": ((X, Y, Z), True),
    "in_a_function": ((X, Y, Z), True),
    "loaded_and_stored_atomically": ((X, Y, Z), True),
    "beside_another_atomic": ((X, Y, Z), True),
    "one_for_each_item": ((X, Y, Z), True),
    "rows_apart": ((Y, Z), True),
    "through_local_memory": ((X, Y, Z), False),
    "where_it_is_finite": ((X, Y, Z), False),
    "where_there_is_enough": ((X, Y, Z), False),
    "quotient": ((X, Y, Z), False),
    "added_in_the_scope_of_a_group": ((X, Y, Z), True),
    "looked_at_and_stored": ((X, Y, Z), True),
    "looked_at_and_stored_atomically": ((X, Y, Z), True),
    "looked_at_and_stored_where_there_is_enough": ((X, Y, Z), False),
}
"""By kernel: dimensions in which work-groups lose updates, and whether that is certain."""


@pytest.fixture(scope="module", params=["sycl", pytest.param("cuda", marks=WITH_NVRTC)])
def reports(request: pytest.FixtureRequest) -> tuple[ObjectReport, ...]:
    if request.param == "cuda":
        sources = ((KERNELS / f"{name}.cu").read_text() for name in ("updates", "unordered_ticket"))
        return tuple(inspect_ptx(nvrtc.build(source).ptx) for source in sources)
    names = ("lost_updates", "honest_updates", "unordered_ticket")
    return tuple(inspect_spirv((KERNELS / f"{name}.spv").read_bytes()) for name in names)


def updates(reports: tuple[ObjectReport, ...]) -> dict[str, UnorderedUpdate]:
    """The first one of each kernel: those that are certain come first."""
    return {update.kernel: update for report in reports for update in reversed(report.updates)}


def test_updates_that_get_lost_are_told(reports: tuple[ObjectReport, ...]) -> None:
    found = updates(reports)
    told = {name: (u.axes, u.is_certain) for name, u in found.items() if name in LOST}
    assert told == LOST


def test_honest_additions_keep_apart_in_the_dimension_that_they_are_launched_in(
    reports: tuple[ObjectReport, ...],
) -> None:
    assert [u for u in updates(reports).values() if X in u.axes and u.kernel not in LOST] == []


def test_a_ticket_that_orders_nothing_is_the_only_other_finding(
    reports: tuple[ObjectReport, ...],
) -> None:
    """Tickets with a fence before them, or that acquire and release, are none."""
    assert [f.rule for r in reports for f in r.findings] == ["object.unordered_ticket"]


def launched(kernel: str, groups: tuple[int, int, int]) -> tuple[Finding, ...]:
    report = inspect_spirv((KERNELS / "lost_updates.spv").read_bytes())
    bound = BoundWorkload(
        workload="w",
        launch_count=1,
        scratch_count=0,
        scratch_bytes=0,
        group_count=1,
        group_size=1,
        kernels=(kernel,),
        grids=(KernelGrid(kernel=kernel, groups=groups),),
    )
    return update_findings([(report, bound), (report, bound)])


@pytest.mark.parametrize(
    ("kernel", "groups", "rules"),
    [
        ("plainly", (8, 1, 1), ["object.lost_update"]),
        ("plainly", (1, 1, 2), ["object.lost_update"]),
        ("plainly", (1, 1, 1), []),
        ("rows_apart", (8, 1, 1), []),
        ("rows_apart", (8, 2, 1), ["object.lost_update"]),
        ("quotient", (8, 1, 1), ["object.unordered_update"]),
        ("another", (8, 1, 1), []),
    ],
)
def test_an_update_counts_where_a_launch_has_several_groups(
    kernel: str, groups: tuple[int, int, int], rules: list[str]
) -> None:
    found = launched(kernel, groups)
    assert [f.rule for f in found] == rules
    for finding in found:
        axis = groups.index(int(finding.evidence[0].value))
        assert f"work-groups of {kernel} along {'xyz'[axis]} " in finding.message
