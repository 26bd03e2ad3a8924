"""Baselines are relied on as long as they are true, and measured again when they are not."""

import asyncio
import dataclasses
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from evaluator_svc.devices.baseline_watch import (
    LOADED_RECHECK_SECONDS,
    RECHECK_SECONDS,
    RECHECK_VERDICTS,
    BaselineWatch,
)
from evaluator_svc.devices.site import DeviceSite
from evaluator_svc.evaluator import LocalEvaluator
from evaluator_svc.hardware.host_load import HostLoad
from evaluator_svc.messages.measurement import MeasurementSettings
from evaluator_svc.pipeline.timing.baseline_check import (
    BaselineClock,
    TimeBaselines,
    check_baselines,
    measured_again,
)
from evaluator_svc.settings import EvaluatorSettings
from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.evaluation import Baseline
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.request import EvaluationRequest, Yardstick
from kernel_foundry.plan.candidate_text import split
from kernel_foundry.sdk.task_file import read_task
from tests.domain_values import timing_of
from tests.evaluator.test_several_devices import LIMITS, RELU
from tests.evaluator.test_several_devices import TASK as SHARED_TASK
from tests.quick_settings import quick_settings

TASK = dataclasses.replace(SHARED_TASK, reference=f"{SHARED_TASK.reference}\n# drifts\n")
"""A task of its own, for tests change what is kept of its admission."""

_LOADED = HostLoad(other_cores=2.0, core_count=2, needed_cores=2)
_QUIET = HostLoad(other_cores=0.0, core_count=2, needed_cores=2)


def _baseline(name: str, median_ns: float) -> Baseline:
    return Baseline(name=name, timing=timing_of(median_ns, half_width=0.02))


class _Clock:
    """What baselines take now; notes what is timed and how long it may take."""

    def __init__(self, **medians_ns: float) -> None:
        self.medians_ns = medians_ns
        self.asked: list[tuple[tuple[str, ...], float]] = []

    def time(self, settings: MeasurementSettings, names: tuple[str, ...]) -> tuple[Baseline, ...]:
        self.asked.append((names, settings.seconds))
        return tuple(_baseline(n, self.medians_ns[n.replace(".", "_")]) for n in names)


def _clock(time: TimeBaselines, *, is_loaded: bool = False) -> BaselineClock:
    return BaselineClock(time=time, seconds=1.0, flush_bytes=0, is_loaded=lambda: is_loaded)


_KNOWN = (_baseline("eager", 5.5e6), _baseline("torch.compile", 4e6), _baseline("cuda_graph", 5e6))


def test_baselines_that_hold_cost_a_moment() -> None:
    clock = _Clock(eager=5.5e6, torch_compile=4e6, cuda_graph=5.8e6)
    checked = check_baselines(_clock(clock.time), _KNOWN)
    assert checked.baselines == _KNOWN
    assert checked.drift is None
    assert clock.asked == [(("cuda_graph",), 0.1)]  # the fastest that starts at once


@pytest.mark.parametrize("factor", [3.0, 0.3])
def test_baselines_that_drifted_are_measured_again_and_it_is_said(factor: float) -> None:
    clock = _Clock(eager=5.5e6 * factor, torch_compile=4e6, cuda_graph=5e6 * factor)
    checked = check_baselines(_clock(clock.time), _KNOWN)
    assert [b.timing.median_ns for b in checked.baselines] == [5.5e6 * factor, 4e6, 5e6 * factor]
    assert checked.drift is not None
    assert checked.drift.kind is FindingKind.BASELINE_DRIFT
    assert f"eager from 5.5 to {5.5 * factor:.3g} ms" in checked.drift.message
    assert "torch.compile" not in checked.drift.message
    assert len(clock.asked[1][0]) == 3


def test_what_other_programs_made_slower_is_no_baseline() -> None:
    """A kernel would gain by the load of the moment."""
    clock = _Clock(eager=200e6, torch_compile=2e6, cuda_graph=90e6)
    checked = check_baselines(_clock(clock.time, is_loaded=True), _KNOWN)
    assert [b.timing.median_ns for b in checked.baselines] == [5.5e6, 2e6, 5e6]
    assert checked.drift is not None
    assert "the faster time of each counts" in checked.drift.message


@pytest.mark.parametrize(("is_loaded", "compiled_ns"), [(False, 9e6), (True, 4e6)])
def test_baselines_of_a_loaded_moment_are_all_measured_again_and_that_is_no_drift(
    is_loaded: bool, compiled_ns: float
) -> None:
    """At another loaded moment the faster time of each counts."""
    clock = _Clock(eager=1.5e6, torch_compile=9e6, cuda_graph=1e6)
    checked = measured_again(_clock(clock.time, is_loaded=is_loaded), _KNOWN)
    assert [b.timing.median_ns for b in checked.baselines] == [1.5e6, compiled_ns, 1e6]
    assert checked.drift is None
    assert clock.asked == [(("eager", "torch.compile", "cuda_graph"), 1.0)]
    nothing = measured_again(_clock(lambda _settings, _names: (), is_loaded=is_loaded), _KNOWN)
    assert (nothing.baselines, nothing.drift) == (_KNOWN, None)


def test_what_has_passed_when_it_is_looked_at_longer_is_no_drift() -> None:
    clock = _Clock(eager=5.5e6, torch_compile=4e6, cuda_graph=20e6)

    def time(settings: MeasurementSettings, names: tuple[str, ...]) -> tuple[Baseline, ...]:
        timed = clock.time(settings, names)
        clock.medians_ns["cuda_graph"] = 5e6
        return timed

    checked = check_baselines(_clock(time), _KNOWN)
    assert (checked.baselines, checked.drift) == (_KNOWN, None)
    assert len(clock.asked) == 2


def test_a_baseline_that_no_longer_works_proves_nothing() -> None:
    checked = check_baselines(_clock(lambda _settings, _names: ()), _KNOWN)
    assert (checked.baselines, checked.drift) == (_KNOWN, None)


def test_baselines_are_looked_at_after_a_while_and_after_some_verdicts() -> None:
    now_s = [0.0]
    watch = BaselineWatch(clock=lambda: now_s[0])
    assert watch.is_due("t", is_loaded=False)
    watch.saw("t", is_loaded=False)
    due = [watch.is_due("t", is_loaded=False) for _ in range(RECHECK_VERDICTS + 1)]
    assert due == [*[False] * RECHECK_VERDICTS, True]
    watch.saw("t", is_loaded=False)
    now_s[0] += RECHECK_SECONDS + 1
    assert watch.is_due("t", is_loaded=False)
    assert watch.is_due("another", is_loaded=False)


def test_in_a_loaded_moment_and_after_one_they_are_looked_at_sooner() -> None:
    now_s = [0.0]
    watch = BaselineWatch(clock=lambda: now_s[0])
    watch.saw("t", is_loaded=False)
    assert not watch.is_due("t", is_loaded=True)  # they were timed in it
    now_s[0] += LOADED_RECHECK_SECONDS + 1
    assert watch.is_due("t", is_loaded=True)
    assert not watch.is_due("t", is_loaded=False)
    watch.saw("t", is_loaded=True)
    assert not watch.is_due("t", is_loaded=False)
    now_s[0] += LOADED_RECHECK_SECONDS + 1
    assert watch.is_due("t", is_loaded=False)


@pytest.fixture(scope="module")
def settings() -> EvaluatorSettings:
    return quick_settings(device_kinds=("null",), spare_processes=0)


@pytest.fixture(scope="module")
def evaluator(settings: EvaluatorSettings) -> Iterator[LocalEvaluator]:
    found = LocalEvaluator(settings)
    yield found
    asyncio.run(found.close())


@pytest.fixture(scope="module")
def admission(evaluator: LocalEvaluator) -> Admission:
    return asyncio.run(evaluator.admit(TASK))


@pytest.fixture
def true(evaluator: LocalEvaluator, admission: Admission) -> Admission:
    """What a quiet moment told; the evaluator, and those after it, know it."""
    _site(evaluator).remember_admission(TASK, admission, _QUIET)
    return admission


def _request(**changes) -> EvaluationRequest:
    return EvaluationRequest(
        task=TASK, device="null:0", source=split(RELU), limits=LIMITS, **changes
    )


def _slowed(admission: Admission, factor: float) -> Admission:
    """Return the admission as a host that was busy would have made it."""
    slow = tuple(
        dataclasses.replace(
            workload,
            baselines=tuple(
                _baseline(b.name, factor * b.timing.median_ns) for b in workload.baselines
            ),
        )
        for workload in admission.workloads
    )
    return dataclasses.replace(admission, workloads=slow)


def _site(evaluator: LocalEvaluator) -> DeviceSite:
    (site,) = evaluator._sites.working()
    return site


def test_an_admission_of_an_earlier_process_is_checked_before_it_is_relied_on(
    settings: EvaluatorSettings, evaluator: LocalEvaluator, true: Admission
) -> None:
    _site(evaluator).remember_admission(TASK, _slowed(true, 2000.0))
    later = LocalEvaluator(settings)
    try:
        checked = asyncio.run(later.admit(TASK))
        again = asyncio.run(later.admit(TASK))
    finally:
        asyncio.run(later.close())
    now, slow = checked.workloads[0], _slowed(true, 50.0).workloads[0]
    assert now.baselines[0].timing != slow.baselines[0].timing
    assert any("drifted" in warning for warning in checked.warnings)
    assert [w for w in again.warnings if "drifted" in w]  # until they are looked at again
    assert again.workloads == checked.workloads


def test_another_process_measures_baselines_of_a_loaded_moment_again(
    settings: EvaluatorSettings,
    evaluator: LocalEvaluator,
    true: Admission,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It does so before it relies on the admission, and prefers one of a quiet moment."""
    slow, site = _slowed(true, 1000.0), _site(evaluator)
    other = dataclasses.replace(TASK, reference=f"{TASK.reference}\n# of no quiet moment\n")
    for task in (TASK, other):
        site.remember_admission(task, slow, _LOADED)
        warnings = asyncio.run(evaluator.admit(task)).warnings
        assert any("loaded moment" in warning for warning in warnings)
    later = LocalEvaluator(settings)
    monkeypatch.setattr(later, "_admitted_within_memory", None)  # nothing is admitted again
    try:
        asyncio.run(later.capabilities())
        kept = _site(later).remembered_admission(TASK)
        assert _site(later).remembered_admission(other) is not None
        assert not _site(later).has_true_baselines(other)
        checked = asyncio.run(later.admit(other))
        assert _site(later).has_true_baselines(other)
    finally:
        asyncio.run(later.close())
    assert kept is not None
    assert kept.workloads == true.workloads
    for now, before in zip(checked.workloads, slow.workloads, strict=True):
        names = [b.name for b in before.baselines]
        assert [b.name for b in now.baselines] == names
        assert not {b.timing for b in now.baselines} & {b.timing for b in before.baselines}
    assert not any("drifted" in warning for warning in checked.warnings)


def test_what_a_loaded_host_refused_or_did_not_compile_is_admitted_anew(
    evaluator: LocalEvaluator, true: Admission, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have had no time."""
    site = _site(evaluator)
    monkeypatch.setattr(site, "settings", quick_settings(baselines=("torch.compile",)))
    compiled = dataclasses.replace(
        true,
        workloads=tuple(
            dataclasses.replace(w, baselines=(*w.baselines, _baseline("torch.compile", 1e6)))
            for w in true.workloads
        ),
    )
    refused = dataclasses.replace(compiled, refusals=("looked_at() is not done",))
    for admission, kept in ((true, None), (refused, None), (compiled, compiled)):
        site.remember_admission(TASK, admission, _LOADED)
        monkeypatch.setattr(site, "_admissions", {})  # as another process finds it
        found = site.remembered_admission(TASK)
        assert (found and found.workloads) == (kept and kept.workloads)


def test_a_verdict_compares_with_what_is_true_now_and_fitness_with_the_runs_yardstick(
    monkeypatch: pytest.MonkeyPatch, evaluator: LocalEvaluator, true: Admission
) -> None:
    workload = true.workloads[0]
    yardstick_ns = min(b.timing.median_ns for b in workload.baselines)
    yardsticks = (Yardstick(workload="default", time_ns=yardstick_ns),)
    before = asyncio.run(evaluator.evaluate(_request(yardsticks=yardsticks)))
    site = _site(evaluator)
    site.remember_admission(TASK, _slowed(true, 2000.0))
    monkeypatch.setattr(site, "baselines", BaselineWatch(clock=count(step=1e6).__next__))
    site.baselines.saw(TASK.digest, is_loaded=False)  # long ago, by the time of the verdict
    verdict = asyncio.run(evaluator.evaluate(_request(yardsticks=yardsticks)))
    assert verdict.passed, verdict.findings
    drifts = [f for f in verdict.findings if f.kind is FindingKind.BASELINE_DRIFT]
    assert len(drifts) == 1
    result = verdict.workloads[0]
    slow = _slowed(true, 50.0).workloads[0]
    assert result.baselines[0].timing != slow.baselines[0].timing
    assert result.yardstick_ns == before.workloads[0].yardstick_ns == yardstick_ns
    given = [before.workloads[0].yardstick_given, result.yardstick_given]
    assert given == [False, True], "only what this evaluator did not measure is the caller's"
    known = site.remembered_admission(TASK)
    assert known is not None
    assert known.workloads[0].baselines == result.baselines


@pytest.mark.gpu
def test_on_a_gpu_baselines_that_drifted_are_measured_again(tmp_path: Path) -> None:
    """The graph of eager tells, at once; the verdict's speed-up is what the true ones say."""
    settings = quick_settings(device_kinds=("cuda",), cache_dir=tmp_path)
    evaluator = LocalEvaluator(settings)
    examples = Path(__file__).parents[2] / "examples"
    task = read_task(examples / "softmax.py")
    text = (examples / "softmax.cuda.md").read_text()
    request = EvaluationRequest(task=task, device="cuda:0", source=split(text))
    try:
        true = asyncio.run(evaluator.admit(task, "cuda:0"))
        before = asyncio.run(evaluator.evaluate(request))
        site = next(s for s in evaluator._sites.working() if s.spec.id == "cuda:0")
        site.remember_admission(task, _slowed(true, 5.0))
        site.baselines = BaselineWatch(clock=count(step=1e6).__next__)
        site.baselines.saw(task.digest, is_loaded=False)
        verdict = asyncio.run(evaluator.evaluate(request))
    finally:
        asyncio.run(evaluator.close())
    assert verdict.passed, verdict.findings
    assert any(f.kind is FindingKind.BASELINE_DRIFT for f in verdict.findings)
    assert before.speedup is not None
    assert verdict.speedup is not None
    assert verdict.speedup < 2.5 * before.speedup  # 5 times as much by what was remembered
