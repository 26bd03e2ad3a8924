"""Probe of the timer: kernels of known duration, timed as candidates are.

Every judgement is a function of samples and of the supervisor's own clock. Other load on the host
only lengthens a sample, so the shortest ones count.
"""

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from evaluator_svc.devices.site import DeviceSite
from evaluator_svc.messages.measurement import MeasurementSettings
from evaluator_svc.peaks.own_kernels import OwnTimes, OwnWorkload, own_kernels
from evaluator_svc.probing.timer_kernels import SPINS_NS, TIMER_KERNELS
from kernel_foundry.domain.finding import Figure
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.probe import Probe

_CHAINS: Final = {"chain_1": 1.0, "chain_2": 2.0, "chain_4": 4.0}
"""Work of each chain, in units of the first."""
_COPY: Final = "copy"
_COPIED_FLOATS: Final = 1 << 18
"""1 MiB read and 1 MiB written: in a cache unless it was emptied."""

_PROPORTION_ERROR: Final = 0.1
"""Of a ratio of two chains; start and end of a kernel are less than 3 % of the shortest chain."""
_ACCOUNTED_SHARE: Final = 0.8
"""Of the wall time that samples of milliseconds account for, once the slack is taken off."""
_SLACK_NS: Final = 30e6
"""Messages and the loop's own allocations."""
_SPREAD_BY_EVENTS: Final = 0.05
_SPREAD_BY_HOST: Final = 0.25
"""Relative spread of the repeated shortest sample; a host does other things meanwhile."""
_COLD_SHARE_BY_EVENTS: Final = 0.95
_COLD_SHARE_BY_HOST: Final = 1.1
"""Of the warm time that a cold one takes at least. A CPU took 3.9 times as long; of a GPU's copy
most is its start (an H200 took 2.7 µs and 2.6 µs), so that only an odd clock is seen there."""
_KNOWN_ERROR: Final = 0.02
_TICK_NS: Final = 1.1e3
"""Older GPUs' clocks tick in 1.024 µs; an H200's in 32 ns."""
_START_NS: Final = 8e3
"""Start and end of a kernel around what its own clock sees."""
_REPETITIONS: Final = 5
_TRIES: Final = 3
"""A pause by the scheduler looks like a wrong clock; it does not come three times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerRun:
    """All measurements of one try, by workload."""

    warm: Mapping[str, OwnTimes]
    """Chains, the copy, and spins where there are any."""
    cold_copy: OwnTimes
    repeated: tuple[OwnTimes, ...]
    """The shortest chain again and again."""
    by_events: bool
    """Whether samples are spans of device events; else they are the host's clock."""


def timer_probes(site: DeviceSite) -> tuple[Probe, ...]:
    """Time kernels of known work; raises ProcessLostError where the process gives no answer."""
    with site.lock.exclusive():
        return assessed_tries(lambda: _measure(site))


def assessed_tries(measure: Callable[[], TimerRun]) -> tuple[Probe, ...]:
    """Measure until every probe passes, at most `_TRIES` times; return the last probes."""
    probes: tuple[Probe, ...] = ()
    for _ in range(_TRIES):
        probes = assess(measure())
        if all(probe.passed for probe in probes):
            break
    return probes


def assess(run: TimerRun) -> tuple[Probe, ...]:
    """Return the probes of one try."""
    probes = [_proportional(run), _accounted(run), _repeatable(run), _cold(run)]
    if any(name in run.warm for name in SPINS_NS):
        probes.append(_known_duration(run))
    return tuple(probes)


def _measure(site: DeviceSite) -> TimerRun:
    language = site.spec.language
    names = [*_CHAINS, *(SPINS_NS if language is Language.CUDA else ())]
    workloads = tuple(OwnWorkload(name=name, floats=64) for name in names)
    copy = OwnWorkload(name=_COPY, floats=_COPIED_FLOATS)
    warm = {}
    with own_kernels(site, TIMER_KERNELS[language], (*workloads, copy)) as kernels:
        with kernels.opened(workloads[0]):
            kernels.times(workloads[0], _settings(samples=100))  # a processor wakes up
            repeated = tuple(
                kernels.times(workloads[0], _settings(samples=20)) for _ in range(_REPETITIONS)
            )
        for workload in workloads:
            with kernels.opened(workload):
                warm[workload.name] = kernels.times(workload, _settings(samples=40))
        with kernels.opened(copy):
            warm[_COPY] = kernels.times(copy, _settings(samples=100))
            flush_bytes = site.spec.flush_bytes
            cold = kernels.times(copy, _settings(samples=20, flush_bytes=flush_bytes))
    return TimerRun(warm=warm, cold_copy=cold, repeated=repeated, by_events=not site.shares_cores)


def _settings(*, samples: int, flush_bytes: int = 0) -> MeasurementSettings:
    """Settings for so many samples, however alike they are."""
    return MeasurementSettings(
        seconds=2.0,
        min_samples=samples,
        max_samples=samples,
        target_half_width=0.0,
        flush_bytes=flush_bytes,
    )


def _best_ns(times: OwnTimes) -> float:
    return min(times.samples_ns)


def _proportional(run: TimerRun) -> Probe:
    """Twice the work of a chain of dependent operations takes twice the time."""
    first_ns = _best_ns(run.warm["chain_1"])
    ratios = {name: _best_ns(run.warm[name]) / first_ns for name in list(_CHAINS)[1:]}
    errors = [abs(ratio / _CHAINS[name] - 1.0) for name, ratio in ratios.items()]
    times = " and ".join(f"{ratio:.2f} times" for ratio in ratios.values())
    return Probe(
        name="timer.proportional",
        passed=max(errors) <= _PROPORTION_ERROR,
        detail=f"2 and 4 times the work of a {first_ns / 1e6:.2f} ms chain took {times} as long"
        f" (allowed: {_PROPORTION_ERROR:.0%} off)",
        figures=(
            Figure(name="chain_ns", value=first_ns),
            Figure(name="ratio_of_2", value=ratios["chain_2"]),
            Figure(name="ratio_of_4", value=ratios["chain_4"]),
        ),
    )


def _accounted(run: TimerRun) -> Probe:
    """The samples fit into the time that the supervisor saw pass, and account for most of it."""
    times = run.warm["chain_4"]
    claimed_ns = statistics.fmean(times.samples_ns) * times.call_count
    share = claimed_ns / max(times.wall_ns - _SLACK_NS, 1.0)
    fits = sum(times.samples_ns) <= times.wall_ns
    return Probe(
        name="timer.accounted",
        passed=fits and share >= _ACCOUNTED_SHARE,
        detail=f"{times.call_count} calls claim {claimed_ns / 1e6:.0f} ms of the"
        f" {times.wall_ns / 1e6:.0f} ms that passed outside",
        figures=(
            Figure(name="claimed_ns", value=claimed_ns),
            Figure(name="wall_ns", value=times.wall_ns),
        ),
    )


def _repeatable(run: TimerRun) -> Probe:
    bests = [_best_ns(times) for times in run.repeated]
    spread = (max(bests) - min(bests)) / statistics.median(bests)
    allowed = _SPREAD_BY_EVENTS if run.by_events else _SPREAD_BY_HOST
    return Probe(
        name="timer.repeatable",
        passed=spread <= allowed,
        detail=f"the best of {len(bests)} measurements of one kernel spread by {spread:.1%}"
        f" (allowed: {allowed:.0%})",
        figures=(Figure(name="relative_spread", value=spread),),
    )


def _cold(run: TimerRun) -> Probe:
    warm_ns, cold_ns = _best_ns(run.warm[_COPY]), _best_ns(run.cold_copy)
    least = _COLD_SHARE_BY_EVENTS if run.by_events else _COLD_SHARE_BY_HOST
    return Probe(
        name="timer.cold",
        passed=cold_ns >= least * warm_ns,
        detail=f"copying 1 MiB took {warm_ns / 1e3:.1f} µs with warm and {cold_ns / 1e3:.1f} µs"
        " with emptied caches",
        figures=(
            Figure(name="warm_ns", value=warm_ns),
            Figure(name="cold_ns", value=cold_ns),
        ),
    )


def _known_duration(run: TimerRun) -> Probe:
    """A kernel that watches the device's own clock takes as long as it was asked to."""
    measured = {name: _best_ns(run.warm[name]) for name in SPINS_NS}
    right = [
        (1.0 - _KNOWN_ERROR) * asked_ns - _TICK_NS
        <= measured[name]
        <= (1.0 + _KNOWN_ERROR) * asked_ns + _TICK_NS + _START_NS
        for name, asked_ns in SPINS_NS.items()
    ]
    times = ", ".join(
        f"{measured[name] / 1e3:.1f} µs for {asked_ns / 1e3:.0f} µs"
        for name, asked_ns in SPINS_NS.items()
    )
    return Probe(
        name="timer.known_duration",
        passed=all(right),
        detail=f"kernels that watch the device's clock were timed with {times}",
        figures=tuple(Figure(name=f"{name}_ns", value=value) for name, value in measured.items()),
    )
