"""A clock that is right passes, and each way in which a clock can be wrong fails a probe."""

import dataclasses
from collections.abc import Callable

import pytest

from evaluator_svc.peaks.own_kernels import OwnTimes
from evaluator_svc.probing.timer import TimerRun, assess, assessed_tries
from evaluator_svc.probing.timer_kernels import SPINS_NS

Clock = Callable[[float], float]
"""From a true duration to what the clock says, both in nanoseconds."""

_LAUNCH_NS = 5e3


def _times(true_ns: float, clock: Clock, *, count: int = 40) -> OwnTimes:
    samples = tuple(clock(true_ns * (1 + 0.001 * (i % 3))) for i in range(count))
    calls = count + 3
    return OwnTimes(samples_ns=samples, call_count=calls, wall_ns=true_ns * calls * 1.02 + 2e6)


def _run(clock: Clock, *, with_spins: bool = True, cold_ns: float = 90e3) -> TimerRun:
    true_ns = {"chain_1": 1e6, "chain_2": 2e6, "chain_4": 4e6, "copy": 30e3}
    if with_spins:
        true_ns |= {name: asked_ns + _LAUNCH_NS for name, asked_ns in SPINS_NS.items()}
    return TimerRun(
        warm={name: _times(value, clock) for name, value in true_ns.items()},
        cold_copy=_times(cold_ns, clock),
        repeated=tuple(_times(1e6, clock) for _ in range(5)),
        by_events=with_spins,
    )


def _failed(run: TimerRun) -> set[str]:
    return {probe.name.removeprefix("timer.") for probe in assess(run) if not probe.passed}


def test_a_right_clock_passes_every_probe() -> None:
    run = _run(lambda ns: ns)
    assert _failed(run) == set()
    assert len(assess(run)) == 5


def test_without_a_clock_on_the_device_proportions_and_the_supervisors_clock_decide() -> None:
    run = _run(lambda ns: ns, with_spins=False)
    assert _failed(run) == set()
    assert "timer.known_duration" not in {probe.name for probe in assess(run)}


@pytest.mark.parametrize(
    ("clock", "failed"),
    [
        (lambda ns: 0.5 * ns, {"accounted", "known_duration"}),
        (lambda ns: 2.0 * ns, {"accounted", "known_duration"}),
        (lambda _ns: 1e6, {"proportional", "accounted", "known_duration"}),
        (lambda ns: ns + 1e6, {"proportional", "accounted", "known_duration"}),
        (lambda ns: min(ns, 1.5e6), {"proportional", "accounted", "known_duration"}),
        (lambda ns: max(ns - 15e3, 1.0), {"known_duration"}),
        (lambda ns: ns + 20e3, {"known_duration"}),
    ],
    ids=["half", "double", "constant", "offset", "saturating", "early stop", "late stop"],
)
def test_a_wrong_clock_is_noticed(clock: Clock, failed: set[str]) -> None:
    assert _failed(_run(clock)) >= failed


def test_a_clock_that_wanders_is_noticed() -> None:
    run = _run(lambda ns: ns)
    wandering = tuple(_times(1e6 * (1 + 0.1 * i), lambda ns: ns) for i in range(5))
    assert _failed(dataclasses.replace(run, repeated=wandering)) == {"repeatable"}


def test_times_with_emptied_caches_below_warm_ones_are_noticed() -> None:
    assert _failed(_run(lambda ns: ns, cold_ns=20e3)) == {"cold"}


def test_caches_that_are_not_emptied_are_noticed_on_a_cpu() -> None:
    """A probe that passes with equal times could not fail there."""
    assert _failed(_run(lambda ns: ns, with_spins=False, cold_ns=30e3)) == {"cold"}


def test_one_disturbed_try_is_repeated_and_a_wrong_clock_stays_wrong() -> None:
    disturbed, right = _run(lambda ns: ns, cold_ns=20e3), _run(lambda ns: ns)
    tries = iter([disturbed, right])
    assert all(probe.passed for probe in assessed_tries(lambda: next(tries)))
    count = 0

    def wrong() -> TimerRun:
        nonlocal count
        count += 1
        return _run(lambda ns: 0.5 * ns)

    assert not all(probe.passed for probe in assessed_tries(wrong))
    assert count == 3
