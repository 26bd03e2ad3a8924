"""Claims that cannot be true are found out; honest ones are let through."""

import dataclasses
import os
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from evaluator_svc.messages.measurement import MeasurementSettings
from evaluator_svc.messages.runner import TimeReply
from evaluator_svc.pipeline.timing import workload_timing
from evaluator_svc.pipeline.timing.time_checks import Claim, adds_up, clocked, floor_ns
from evaluator_svc.pipeline.timing.workload_timing import WorkloadTimer
from evaluator_svc.processes.core_times import CoreTimes
from kernel_foundry.domain.check import CheckResult
from kernel_foundry.domain.device import Peaks
from kernel_foundry.domain.evaluation import StopReason
from kernel_foundry.domain.language import Language

_PEAKS = Peaks(
    bandwidth_bytes_per_second=1e10,
    cache_bandwidth_bytes_per_second=4e10,
    flops_per_second=1e11,
    launch_ns=1e4,
    read_bandwidth_bytes_per_second=1e10,
)
_COLD = Claim(samples_ns=(2e6,) * 20, warmup_count=3, wall_ns=300e6)
_WARM = Claim(samples_ns=(1.5e6,) * 60, warmup_count=3, wall_ns=96e6)


def test_honest_times_are_possible():
    """Cold a little above warm, warm samples filling the wall time, above the floor."""
    assert clocked(_COLD, _WARM, workload="w", median_ns=2e6, floor=1e6).failure is None


@pytest.mark.parametrize(
    ("cold", "warm", "median_ns", "floor", "words"),
    [
        (dataclasses.replace(_COLD, wall_ns=1e6), _WARM, 2e6, 0.0, "longer"),
        (_COLD, dataclasses.replace(_WARM, samples_ns=(1e5,) * 60), 2e6, 0.0, "add up"),
        (_COLD, _WARM, 5e5, 0.0, "emptied caches"),
        (_COLD, _WARM, 2e6, 3e6, "bandwidth"),
        (dataclasses.replace(_COLD, samples_ns=(-1.0,) * 20), _WARM, 2e6, 0.0, "zero or negative"),
    ],
)
def test_impossible_times_are_found_out(cold, warm, median_ns, floor, words):
    """Each way to claim too little has its own words."""
    failure = clocked(cold, warm, workload="w", median_ns=median_ns, floor=floor).failure
    assert failure is not None
    assert words in failure.findings[0].message


def test_a_clock_that_runs_ten_times_slow_leaves_a_gap():
    """Warm samples must account for the time that the supervisor saw pass."""
    assert adds_up(_WARM)
    slow = dataclasses.replace(_WARM, samples_ns=tuple(s / 10 for s in _WARM.samples_ns))
    assert not adds_up(slow)


def test_what_the_runner_waited_for_a_core_is_not_missing():
    """On a loaded host most of the time may be others'; a slow clock shows all the same."""
    loaded = dataclasses.replace(_WARM, wall_ns=10 * _WARM.wall_ns)
    assert not adds_up(loaded)
    waiting = dataclasses.replace(loaded, waiting_ns=9 * _WARM.wall_ns)
    assert adds_up(waiting)
    slow = tuple(s / 10 for s in _WARM.samples_ns)
    assert not adds_up(dataclasses.replace(waiting, samples_ns=slow))
    # However long several threads have waited, what one of them worked has passed.
    worked = dataclasses.replace(loaded, waiting_ns=1e12, busy_ns=_WARM.wall_ns)
    assert adds_up(worked)
    assert not adds_up(dataclasses.replace(worked, samples_ns=slow))


def test_work_is_counted_and_sleep_is_not():
    """In the process itself and in what it started."""
    script = "import sys; [None for _ in range(3_000_000)]; print(flush=True); sys.stdin.read()"
    shell = f"{sys.executable} -c '{script}'; true"
    pipe = subprocess.PIPE
    nothing = CoreTimes(on_core={}, waiting={})
    with subprocess.Popen(["sh", "-c", shell], stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None
        process.stdout.readline()
        worked = CoreTimes.of(process.pid)
        time.sleep(0.3)
        slept = CoreTimes.of(process.pid)
        process.communicate()
    assert worked.busiest_since(nothing) > 1e7
    assert slept.busiest_since(worked) < 1e8
    assert CoreTimes.of(process.pid).busiest_since(nothing) == 0.0


def test_what_overwriting_outputs_takes_is_not_missing():
    """Of 3 ms between two calls 1.2 are the loop's own; a slow clock shows all the same."""
    calls = dataclasses.replace(_WARM, samples_ns=(1e6,) * 60, wall_ns=63 * 3e6 + 30e6)
    assert not adds_up(calls)
    poisoned = dataclasses.replace(calls, poisoning_ns=1.2e6)
    assert adds_up(poisoned)
    assert not adds_up(dataclasses.replace(poisoned, samples_ns=(1e5,) * 60))


def test_the_floor_knows_of_the_cache_and_of_prepared_weights():
    """Data that stays in the cache may move at its speed; prepared weights may be smaller."""
    assert floor_ns(1e6, _PEAKS, in_cache=False) == pytest.approx(5e5)
    assert floor_ns(1e6, _PEAKS, in_cache=False, prepared_bytes=10**6) == pytest.approx(4.5e5)
    assert floor_ns(1e6, _PEAKS, in_cache=False, prepared_bytes=10**8) == 0.0
    assert floor_ns(1e6, _PEAKS, in_cache=True) == pytest.approx(1.25e5)


@pytest.mark.parametrize(
    ("language", "is_believed"), [(Language.SYCL, False), (Language.CUDA, True)]
)
def test_only_a_device_timed_by_events_has_a_host_clock_of_its_own(language, is_believed):
    """A kernel on the CPU could add one to its samples, and so escape the supervisor's clock."""
    claimed = TimeReply(
        samples_ns=(1e3,) * 20,
        host_ns=(1e3,) * 20,
        device_ns=(),
        stop_reason=StopReason.CONVERGED,
        warmup_count=3,
        discarded_count=0,
        kept=(),
    )
    process = SimpleNamespace(
        process_id=os.getpid(),
        ask=lambda *_args, **_rest: SimpleNamespace(message=claimed, blobs=()),
    )
    timer = WorkloadTimer(
        process,
        judge=None,
        draw=SimpleNamespace(workload="default", slot_count=4, slots=()),
        admission=None,
        settings=SimpleNamespace(
            device=SimpleNamespace(language=language, flush_bytes=0), run_seconds=1.0, peaks=_PEAKS
        ),
    )
    pool = SimpleNamespace(set_count=1)
    (_, claim), _kept = timer._measure(MeasurementSettings(seconds=0.1), pool, keep_count=0)
    claim = dataclasses.replace(claim, wall_ns=1e9)
    assert adds_up(claim) is is_believed


def test_a_host_that_is_busy_for_a_while_makes_no_honest_times_impossible(monkeypatch):
    """Warm times three times as long as cold ones are taken again, until the others let go."""
    waited = []
    monkeypatch.setattr(workload_timing.time, "sleep", waited.append)
    slow, usual = _warm_block(3e6), _warm_block(0.9e6)
    blocks = iter([slow, slow, slow, slow, usual])
    timer = _warm_timer(Language.SYCL, lambda *_args, **_rest: (next(blocks), "claim"))

    assert timer._warm(1e6, pool=None) == (*usual, ("judged", usual[0].kept, "claim"))
    assert sum(waited) >= 1.0
    assert next(blocks, None) is None


@pytest.mark.parametrize("language", list(Language))
def test_one_warm_call_is_kept(language):
    """By events each has other inputs than the one before."""
    asked = []

    def measure(settings, _pool, **how):
        asked.append((settings, how))
        return _warm_block(0.9e6), "claim"

    _warm_timer(language, measure)._warm(1e6, pool=None)
    ((settings, how),) = asked
    assert bool(settings.redraw_key) is (language is Language.CUDA)
    assert how == {"keep_count": 1}


def _warm_timer(language, measure):
    timer = WorkloadTimer.__new__(WorkloadTimer)
    device = SimpleNamespace(language=language)
    timer._settings = SimpleNamespace(warm_seconds=0.1, device=device)
    timer._draw = SimpleNamespace(draw=1)
    timer._judge = SimpleNamespace(
        poison=lambda _draw: None,
        verify_kept=lambda _draw, kept, claim: ("judged", kept, claim),
    )
    timer._measure = measure
    return timer


def _warm_block(sample_ns):
    claim = Claim(samples_ns=(sample_ns,) * 20, warmup_count=3, wall_ns=25 * sample_ns)
    return SimpleNamespace(samples_ns=claim.samples_ns, kept=()), claim


@pytest.mark.parametrize(
    ("median_ns", "result"),
    [
        (2e6, CheckResult.PASSED),
        (1.6e6, CheckResult.SUSPECT),
        (0.9e6, CheckResult.FAILED),
    ],
)
def test_a_time_below_the_traffic_bound_is_suspect_before_it_is_impossible(median_ns, result):
    """A floor of 1 ms is half of the bound; 0.9 of the bound is believed."""
    warm = dataclasses.replace(_WARM, samples_ns=(0.8e6,) * 115)
    found = clocked(
        _COLD, warm, workload="default", median_ns=median_ns, floor=1e6, believed_share=0.9
    )
    assert found.checks[-1].result is result
    rules = [finding.rule for finding in found.suspicions]
    assert rules == (["timing.traffic_bound"] if result is CheckResult.SUSPECT else [])
    assert (found.failure is not None) is (result is CheckResult.FAILED)
