"""Findings on the speed of a correct candidate: its times against the device's measured limits.

Counts and peaks come from admission. Each finding names the numbers that it follows from.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from evaluator_svc.behaviour import KernelFacts
from evaluator_svc.diagnosis.bound_hints import bound_hint, is_vectorised
from evaluator_svc.diagnosis.resources import resource_findings
from evaluator_svc.languages import backend_of
from kernel_foundry.domain.admission import WorkloadAdmission
from kernel_foundry.domain.device import DeviceSpec, Peaks
from kernel_foundry.domain.evaluation import KernelResources, Timing, WorkloadResult
from kernel_foundry.domain.finding import Figure, Finding, FindingKind, Severity
from kernel_foundry.domain.launch_facts import LaunchFacts
from kernel_foundry.domain.traffic_bound import AT_TRAFFIC_BOUND
from kernel_foundry.quantity_text import time_text, uncertainty_text

_LAUNCH_SHARE: Final = 0.3
"""Share of the time above which launching sets it."""
_BOUND_SHARE: Final = 0.5
"""Share of a limit above which that limit sets the time."""
_NEAR_BOUND: Final = 0.9
"""Share of the traffic bound above which each byte is touched about once, and little can be
gained."""
_OWN_SHARE: Final = 0.5
"""Share of the time in own kernels below which library calls set the time."""
_STRIDED_SHARE: Final = 0.25
_WARM_SHARE: Final = 0.6
"""Share of the cold time; a warm time below it shows that data stay in the caches."""
_NOISE: Final = 0.05
"""Half-width of the median's interval over the median."""
_THROTTLING: Final = frozenset(
    {"hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake"}
)
"""Reasons for a slow clock for which samples are dropped if there are others
(`native/src/nvml.cpp`)."""
_WASTED_LANES: Final = 8
"""Work-items of a group on a CPU below which a vector unit cannot be filled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Numbers:
    """Shares of the time that each limit would take alone."""

    median_ns: float
    traffic_bound_ns: float
    bytes_ns: float
    """Each byte once, also those that a cache may keep; at least the traffic bound."""
    estimate_ns: float
    """The arithmetic on the fastest unit that the tolerance admits."""
    unit: str
    """That unit."""
    fma_ns: float
    """The same arithmetic by float32 FMA alone."""
    launch_ns: float

    @property
    def traffic_bound_share(self) -> float:
        return self.traffic_bound_ns / self.median_ns


def performance_findings(
    result: WorkloadResult,
    admission: WorkloadAdmission,
    device: DeviceSpec,
    peaks: Peaks,
    *,
    kernels: KernelFacts | None = None,
    launches: LaunchFacts | None = None,
    resources: tuple[KernelResources, ...] = (),
    has_counters: bool = False,
) -> tuple[Finding, ...]:
    """Return the findings on a timed workload; empty if it has no timing.

    Args:
        result: The workload's times.
        admission: Its FLOPs and bytes.
        device: Where it ran.
        peaks: The device's measured limits.
        kernels: What the kernels do; None: not known.
        launches: What the plan launches; None: not known.
        resources: What the kernels take; empty: not known.
        has_counters: Whether hardware counters tell what the kernels' accesses move.
    """
    timing = result.timing
    if timing is None or timing.median_ns <= 0:
        return ()
    numbers = _numbers(timing, admission, peaks, launches)
    facts = (
        _traffic_bound(numbers),
        *_arithmetic_estimate(numbers),
        *_cached(timing, result.warm_timing, device),
        *_noisy(timing),
        *_throttled(timing),
        *_library(result.own_share),
    )
    is_done = numbers.traffic_bound_share >= _NEAR_BOUND
    if is_done or (result.own_share is not None and result.own_share < _OWN_SHARE):
        return facts  # advice on the kernels would contradict what they reach, or miss the time
    return (
        *facts,
        *(
            finding
            for finding in _bound(numbers, device, kernels, launches)
            # Counters see how busy units are, also by work that the graph has not.
            if not (has_counters and finding.kind is FindingKind.LATENCY_BOUND)
        ),
        *(_strided(kernels, device) if kernels is not None and not has_counters else ()),
        *(_group_size(launches, device, kernels) if launches is not None else ()),
        *resource_findings(resources, launches, device, kernels=kernels, times=result.kernel_times),
    )


def _numbers(
    timing: Timing, admission: WorkloadAdmission, peaks: Peaks, launches: LaunchFacts | None
) -> _Numbers:
    count = 1 if launches is None else launches.launch_count
    return _Numbers(
        median_ns=timing.median_ns,
        traffic_bound_ns=admission.traffic_bound_ns,
        bytes_ns=max(
            admission.traffic_bound_ns,
            _time_ns(
                admission.minimal_bytes,
                max(peaks.bandwidth_bytes_per_second, peaks.read_bandwidth_bytes_per_second),
            ),
        ),
        estimate_ns=admission.arithmetic_estimate_ns,
        unit=admission.arithmetic_unit,
        fma_ns=_time_ns(admission.flops, peaks.flops_per_second),
        launch_ns=count * peaks.launch_ns,
    )


def _time_ns(amount: float, per_second: float) -> float:
    return 1e9 * amount / per_second if per_second > 0 else 0.0


def _traffic_bound(numbers: _Numbers) -> Finding:
    share = numbers.traffic_bound_share
    is_there = share >= AT_TRAFFIC_BOUND
    return Finding(
        kind=FindingKind.TRAFFIC_BOUND,
        severity=Severity.INFO,
        message=f"{share:.0%} of the traffic bound: moving the compulsory bytes takes "
        f"{time_text(numbers.traffic_bound_ns)}, {time_text(numbers.median_ns)} were measured",
        evidence=(
            Figure(name="traffic_bound_share", value=share),
            Figure(name="traffic_bound_ns", value=numbers.traffic_bound_ns),
            Figure(name="median_ns", value=numbers.median_ns),
        ),
        hint="little is left to gain: no kernel moves these bytes faster" if is_there else "",
    )


def _arithmetic_estimate(numbers: _Numbers) -> Iterator[Finding]:
    """Say how the time compares with the estimate, where that is what a kernel may run into."""
    share = numbers.estimate_ns / numbers.median_ns
    is_beaten = share > 1.0
    if not is_beaten and numbers.estimate_ns <= numbers.traffic_bound_ns:
        return
    figures = (
        f"{time_text(numbers.estimate_ns)} for the graph's operations ({numbers.unit}), "
        f"{time_text(numbers.median_ns)} were measured"
    )
    yield Finding(
        kind=FindingKind.ARITHMETIC_ESTIMATE,
        severity=Severity.INFO,
        message="faster than the arithmetic estimate: it does less or cheaper arithmetic than the "
        f"graph: {figures}"
        if is_beaten
        else f"{share:.0%} of the arithmetic estimate: {figures}",
        evidence=(
            Figure(name="arithmetic_estimate_share", value=share),
            Figure(name="arithmetic_estimate_ns", value=numbers.estimate_ns),
            Figure(name="median_ns", value=numbers.median_ns),
        ),
    )


_BOUND_MESSAGES: Final = {
    FindingKind.LAUNCH_BOUND: "launching takes {share:.0%} of the time",
    FindingKind.MEMORY_BOUND: "memory: moving each byte once, whatever a cache keeps, would take "
    "{share:.0%} of the time",
    FindingKind.COMPUTE_BOUND: "arithmetic: at the full rate of {unit} it would take {share:.0%} "
    "of the time",
    FindingKind.LATENCY_BOUND: "neither memory nor arithmetic is busy: the larger would take "
    "{share:.0%} of the time",
}


def _bound(
    numbers: _Numbers,
    device: DeviceSpec,
    kernels: KernelFacts | None,
    launches: LaunchFacts | None,
) -> Iterator[Finding]:
    launch, memory = numbers.launch_ns / numbers.median_ns, numbers.bytes_ns / numbers.median_ns
    unit, compute = _busiest_unit(numbers)
    is_beaten = numbers.estimate_ns > numbers.median_ns
    if is_beaten and max(launch / _LAUNCH_SHARE, memory / _BOUND_SHARE) < 1.0:
        return  # the graph's operations do not show how busy its units are
    if launch >= _LAUNCH_SHARE:
        kind, share = FindingKind.LAUNCH_BOUND, launch
    elif max(memory, compute) < _BOUND_SHARE:
        kind, share = FindingKind.LATENCY_BOUND, max(memory, compute)
    elif memory >= compute:
        kind, share = FindingKind.MEMORY_BOUND, memory
    else:
        kind, share = FindingKind.COMPUTE_BOUND, compute
    yield Finding(
        kind=kind,
        severity=Severity.INFO,
        message=_BOUND_MESSAGES[kind].format(share=share, unit=unit),
        evidence=(
            Figure(name="memory_share", value=memory),
            Figure(name="compute_share", value=compute),
            Figure(name="launch_share", value=launch),
        ),
        hint=bound_hint(kind, device.language, kernels, launches),
    )


def _busiest_unit(numbers: _Numbers) -> tuple[str, float]:
    """Return the unit that the operations would keep busy longest, and for what share.

    A float32 product may run on matrix units or on FMA; one that would take longer than was
    measured does not run there.
    """
    shares = {"FMA": numbers.fma_ns / numbers.median_ns}
    shares[numbers.unit] = numbers.estimate_ns / numbers.median_ns
    possible = {unit: share for unit, share in shares.items() if share <= 1.0}
    if not possible:
        return numbers.unit, 0.0
    return max(possible.items(), key=lambda item: item[1])


def _cached(timing: Timing, warm: Timing | None, device: DeviceSpec) -> Iterator[Finding]:
    if warm is None or not timing.is_cold or warm.median_ns >= _WARM_SHARE * timing.median_ns:
        return
    yield Finding(
        kind=FindingKind.CACHED_DATA,
        severity=Severity.INFO,
        message="with warm caches it is much faster: the data fit into the last-level cache",
        evidence=(
            Figure(name="warm_median_ns", value=warm.median_ns),
            Figure(name="cold_median_ns", value=timing.median_ns),
            Figure(name="cache_bytes", value=float(device.cache_bytes)),
        ),
        hint="the cold time counts: what the kernel reads first from memory decides it",
    )


def _noisy(timing: Timing) -> Iterator[Finding]:
    lower, upper = timing.ci95_ns
    half_width = (upper - lower) / 2 / timing.median_ns
    if half_width <= _NOISE:
        return
    yield Finding(
        kind=FindingKind.NOISY_TIMING,
        severity=Severity.WARNING,
        message=f"the median is known to {uncertainty_text(*timing.bounds_ns)} only",
        evidence=(
            Figure(name="half_width", value=half_width),
            Figure(name="sample_count", value=float(len(timing.samples_ns))),
        ),
        hint="differences smaller than this mean nothing",
    )


def _throttled(timing: Timing) -> Iterator[Finding]:
    blocks = [block for block in timing.clocks if _THROTTLING.intersection(block.throttle_reasons)]
    if not blocks:
        return
    reasons = sorted({r for block in blocks for r in _THROTTLING & set(block.throttle_reasons)})
    slow = sum(block.sample_count for block in blocks)
    yield Finding(
        kind=FindingKind.THROTTLED,
        severity=Severity.WARNING,
        message=f"the device was slowed down ({', '.join(reasons)}) during {slow} of "
        f"{len(timing.samples_ns)} samples, and gave no others",
        evidence=(
            Figure(name="throttled_count", value=float(slow)),
            Figure(name="discarded_count", value=float(timing.discarded_count)),
        ),
        hint="the time is that of a slower device: measure again when it has cooled, or fix clocks",
    )


def _library(own_share: float | None) -> Iterator[Finding]:
    if own_share is None:
        return
    yield Finding(
        kind=FindingKind.LIBRARY_SHARE,
        severity=Severity.INFO,
        message=f"library calls take {1.0 - own_share:.0%} of the time, "
        f"own kernels {own_share:.0%}",
        evidence=(Figure(name="own_share", value=own_share),),
        hint="what stands around the calls is little: a faster one has to take their place"
        if own_share < _OWN_SHARE
        else "",
    )


def _strided(kernels: KernelFacts, device: DeviceSpec) -> Iterator[Finding]:
    if kernels.strided_share < _STRIDED_SHARE:
        return
    if kernels.has_matrix_product and kernels.moves_ahead:
        return  # one bulk copy counts as one access here, and moves a tile
    lane = "threadIdx.x" if backend_of(device.language).has_warps else "lane"
    yield Finding(
        kind=FindingKind.STRIDED_ACCESS,
        severity=Severity.WARNING,
        message=f"in {kernels.strided_share:.0%} of the global accesses, weighted by loops, "
        "neighbouring work-items touch data that lie apart",
        line=kernels.strided_line,
        evidence=(Figure(name="strided_share", value=kernels.strided_share),),
        hint=f"let neighbours touch neighbours: a sub-group (warp) walks one row as p[i + {lane}]",
    )


def _group_size(
    launches: LaunchFacts, device: DeviceSpec, kernels: KernelFacts | None
) -> Iterator[Finding]:
    evidence = (
        Figure(name="group_count", value=float(launches.group_count)),
        Figure(name="group_size", value=float(launches.group_size)),
        Figure(name="compute_units", value=float(device.compute_units)),
    )
    if launches.group_count < device.compute_units:
        yield Finding(
            kind=FindingKind.LATENCY_BOUND,
            severity=Severity.WARNING,
            message=f"{launches.group_count} work-groups leave some of the "
            f"{device.compute_units} compute units idle",
            evidence=evidence,
            hint="make more and smaller work-groups"
            if launches.group_size > _fewest_lanes(device)
            else "split the work of each work-group over several",
        )
    elif launches.group_size < _fewest_lanes(device) and not (
        not backend_of(device.language).has_warps and is_vectorised(kernels)
    ):
        yield Finding(
            kind=FindingKind.LATENCY_BOUND,
            severity=Severity.WARNING,
            message=f"{launches.group_size} work-items in a group cannot fill a vector unit of "
            f"{device.sub_group_size}",
            evidence=evidence,
            hint=f"make the work-group a multiple of {device.sub_group_size}",
        )


def _fewest_lanes(device: DeviceSpec) -> int:
    """Return the smallest group that does not waste the device: a whole warp on a GPU."""
    if backend_of(device.language).has_warps:
        return device.sub_group_size
    return min(_WASTED_LANES, device.sub_group_size)
