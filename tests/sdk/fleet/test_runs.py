"""Runs and suites on-a-fleet: what a run keeps asking for, and what its record says."""

from pathlib import Path

from archive_svc.archive import LocalArchive
from kernel_foundry.domain.device_class import device_class, kept_to_class
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import EvaluationLimits
from kernel_foundry.sdk.loop.budget import Budget
from kernel_foundry.sdk.optimization import optimize, resume
from kernel_foundry.sdk.services import Services
from kernel_foundry.sdk.suite.suite_run import devices_of
from kernel_foundry.testing.generator import FakeGenerator
from tests.sdk.fleet.hosts import TASK, Host, device, fleet_of

FAST, SLOW = device("fast"), device("slow")


async def test_a_run_keeps_its_class_when_another_process_goes_on_with_it(
    tmp_path: Path,
) -> None:
    """The class that its task was admitted on is part of the run."""
    archive = LocalArchive(f"sqlite:///{tmp_path}/runs.db")
    hosts = {"a:1": Host(FAST), "b:1": Host(SLOW), "c:1": Host(FAST)}
    fleet = fleet_of(hosts)
    services = Services(evaluator=fleet, archive=archive, generator=FakeGenerator())
    ended = await optimize(
        services,
        TASK,
        language=Language.SYCL,
        device="null",
        models=(),
        budget=Budget(evaluations=6),
        limits=EvaluationLimits(),
        run="on-a-fleet",
        listener=lambda _event: None,
    )
    assert ended.run.spec.device == device_class(FAST)
    await fleet.close()
    # Elsewhere most devices are of the other class.
    smaller = {"b:1": Host(SLOW), "d:1": Host(SLOW), "c:1": hosts["c:1"]}
    fleet = fleet_of(smaller)
    services = Services(evaluator=fleet, archive=archive, generator=FakeGenerator())
    await resume(
        services,
        "on-a-fleet",
        budget=Budget(evaluations=10),
        limits=EvaluationLimits(),
        listener=lambda _event: None,
    )
    archived = await archive.evaluations("on-a-fleet")
    assert {e.evaluation.device for e in archived} <= {"null:0@a:1", "null:0@c:1"}
    assert smaller["d:1"].judged == smaller["b:1"].judged == []
    await fleet.close()
    await archive.close()


async def test_a_suite_has_a_run_at_a_time_for_each_device_of_one_class() -> None:
    """Each run may use the whole class, so that none ends with its host."""
    fleet = fleet_of({"a:1": Host(FAST), "b:1": Host(SLOW), "c:1": Host(FAST)})
    assert await devices_of(fleet, ("null",), Language.SYCL) == (device_class(FAST),) * 2
    assert await devices_of(fleet, ("null:0@b:1", "null"), Language.SYCL) == (
        "null:0@b:1",
        *(device_class(FAST),) * 2,
    )
    await fleet.close()


def test_only_of_a_fleet_a_run_is_kept_to_a_class() -> None:
    """A single evaluator has one class of a kind; a device that was named stays."""
    of_fleet = device("fast", id="null:0@a:1")
    assert kept_to_class("null", FAST) == "null"
    assert kept_to_class("null", of_fleet) == device_class(of_fleet)
    assert kept_to_class("null:0@a:1", of_fleet) == "null:0@a:1"
