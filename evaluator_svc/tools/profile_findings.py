"""Turns ncu's metrics into findings with hints; the figures are in the kernel's profile."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from evaluator_svc.tools import profile_report as report
from evaluator_svc.tools.profile_report import LaunchMetrics
from kernel_foundry.domain.finding import Figure, Finding, FindingKind, Severity

_MAX_KERNELS: Final = 3
"""Most kernels with findings, those that take longest first."""
AT_PEAK: Final = 0.8
"""Share of a unit's peak above which waiting is due to the unit, and wasted bytes cost little."""
BUSY: Final = 0.6
"""Share of a peak above which it limits the kernel. Warps at a barrier have then done their
part, such as producers of tiles that wait for the end."""
_USES_TENSOR_PIPE: Final = 0.1
_LEAST_TIME: Final = 0.1
"""Share of the time of all measured kernels below which a kernel's waste is not reported."""
_LEAST_MOVED: Final = 0.2
"""Share of the last-level cache's sectors below which wasteful accesses are few."""
_STALL_SHARE: Final = 0.3
_CONFLICT_SHARE: Final = 0.1
"""Share of the passes over shared memory."""
_WASTE: Final = 0.6
"""Share of a sector's bytes; accesses that use less are reported."""
_SECTOR_BYTES: Final = 32


def profile_findings(measured: Iterable[LaunchMetrics]) -> tuple[Finding, ...]:
    """Return the findings of measured launches: several for each kernel, the longest first."""
    slowest: dict[str, LaunchMetrics] = {}
    times_ns: defaultdict[str, float] = defaultdict(float)
    for one in measured:
        times_ns[one.kernel] += one.time_ns
        known = slowest.get(one.kernel)
        if known is None or one.time_ns > known.time_ns:
            slowest[one.kernel] = one
    total_ns = sum(times_ns.values())
    ordered = sorted(slowest.values(), key=lambda one: -one.time_ns)[:_MAX_KERNELS]
    return tuple(
        finding
        for one in ordered
        for finding in _of_kernel(one, is_small=times_ns[one.kernel] < _LEAST_TIME * total_ns)
    )


def _of_kernel(one: LaunchMetrics, *, is_small: bool) -> Iterator[Finding]:
    yield _use(one)
    if is_small:
        return
    if one.busiest_share < AT_PEAK:
        yield from _waiting(one)
    yield from _conflicts(one)
    if one.share(report.MEMORY_SHARE) < AT_PEAK:
        yield from _waste(one)


_EVIDENCE: Final = (
    ("gpu_time_ns", report.TIME, 1.0),
    ("dram_bytes_per_second", report.MEMORY_RATE, 1.0),
    ("dram_share", report.MEMORY_SHARE, 0.01),
    ("compute_share", report.COMPUTE_SHARE, 0.01),
    ("fma_pipe_share", report.FMA_PIPE, 0.01),
    ("tensor_pipe_share", report.TENSOR_PIPE, 0.01),
    ("l2_share", report.CACHE_SHARE, 0.01),
    ("achieved_occupancy", report.ACHIEVED_OCCUPANCY, 0.01),
    ("possible_occupancy", report.POSSIBLE_OCCUPANCY, 0.01),
)


_FULL_TENSOR_PIPE: Final = (
    "matrix units bind: only fewer products (parts) or a format with a higher rate make it faster"
)
_BUSY_TENSOR_PIPE: Final = (
    "matrix units are what binds: keep them fed (tiles on their way, larger tiles, what comes after"
    " the product beside the next one), or fewer products"
)


def _use(one: LaunchMetrics) -> Finding:
    """How busy the device is: what binds, by its own counters."""
    numbers = {n: f * one.metrics[m] for n, m, f in _EVIDENCE if m in one.metrics}
    memory, compute = one.share(report.MEMORY_SHARE), one.share(report.COMPUTE_SHARE)
    tensor, cache = one.share(report.TENSOR_PIPE), one.share(report.CACHE_SHARE)
    if max(one.busiest_share, cache) < BUSY:
        kind, hint = FindingKind.LATENCY_BOUND, "none is busy: see what warps wait for"
    elif max(memory, cache) >= max(compute, tensor):
        kind, hint = FindingKind.MEMORY_BOUND, "move fewer bytes: fuse, keep data on chip"
    elif tensor >= AT_PEAK:
        kind, hint = FindingKind.COMPUTE_BOUND, _FULL_TENSOR_PIPE
    elif tensor >= BUSY:
        kind, hint = FindingKind.COMPUTE_BOUND, _BUSY_TENSOR_PIPE
    else:
        kind, hint = FindingKind.COMPUTE_BOUND, "fewer instructions: reuse loads, vectors, fma"
    text = f"memory at {memory:.0%} of its peak, multiprocessors at {compute:.0%}"
    if cache >= max(memory, BUSY):
        text += f", L2 at {cache:.0%}"
    if tensor >= _USES_TENSOR_PIPE:
        text += f", tensor pipe at {tensor:.0%}"
    return Finding(
        kind=kind,
        severity=Severity.INFO,
        message=f"{one.kernel}, by its counters: {text}",
        evidence=tuple(Figure(name=name, value=value) for name, value in numbers.items()),
        hint=hint,
    )


_STALLS: Final = {
    "long_scoreboard": (
        "data from global memory",
        "more loads in flight: several elements for each thread, loads before they are needed "
        "(cp.async, double buffering)",
    ),
    "short_scoreboard": (
        "shared memory or special functions",
        "fewer shared accesses: vectors of 16 bytes, register tiles; fewer exp, div and sqrt",
    ),
    "barrier": ("barriers", "fewer __syncthreads(), smaller blocks, warp shuffles instead"),
    "membar": ("memory fences", "fewer __threadfence() and atomics with an order"),
    "lg_throttle": ("the queue for global accesses", "fewer and wider accesses: float4"),
    "mio_throttle": (
        "the queue for shared memory and special functions",
        "wider shared accesses, fewer shuffles and special functions",
    ),
    "math_pipe_throttle": ("arithmetic units", "they are busy: fewer operations, or matrix units"),
    "wait": ("results of their own last instruction", "independent work: several accumulators"),
    "imc_miss": ("constants and parameters", "the kernel is very short, or reads many constants"),
    "no_instruction": ("instructions", "less unrolling: the code is larger than its cache"),
    "gmma": ("matrix units", "more tiles in flight"),
    "drain": ("stores at the end", "spread the stores, or store vectors"),
    "branch_resolving": ("branches", "fewer and more uniform branches"),
    "not_selected": ("others to go first", "there are warps enough"),
}


_BARRIERS_OF_PRODUCTS: Final = (
    "warps that only load tiles and then wait for the end cost nothing; where the others wait too, "
    "more tiles between barriers"
)


def _waiting(one: LaunchMetrics) -> Iterator[Finding]:
    stalls = one.stalls
    if not stalls or stalls[0][1] < _STALL_SHARE:
        return
    reason, share = stalls[0]
    what, hint = _STALLS.get(reason, (reason.replace("_", " "), ""))
    if reason == "barrier":
        if one.busiest_share >= BUSY:
            return
        if one.share(report.TENSOR_PIPE) >= _USES_TENSOR_PIPE:
            hint = _BARRIERS_OF_PRODUCTS
    yield Finding(
        kind=FindingKind.STALL,
        severity=Severity.INFO,
        message=f"{one.kernel}: {share:.0%} of the time that warps wait, they wait for {what}",
        evidence=tuple(Figure(name=f"stall_{name}", value=value) for name, value in stalls[:4]),
        hint=hint,
    )


def _conflicts(one: LaunchMetrics) -> Iterator[Finding]:
    conflicts = one.metrics.get(report.CONFLICTS, 0.0)
    passes = one.metrics.get(report.SHARED_WAVEFRONTS, 0.0)
    if passes <= 0 or conflicts < _CONFLICT_SHARE * passes:
        return
    yield Finding(
        kind=FindingKind.BANK_CONFLICT,
        severity=Severity.WARNING,
        message=f"{one.kernel}: {conflicts / passes:.0%} of the passes over shared memory are "
        "repeated because of bank conflicts",
        evidence=(
            Figure(name="bank_conflicts", value=conflicts),
            Figure(name="shared_wavefronts", value=passes),
        ),
        hint="pad rows by one element ([32][33]) or swizzle the column with the row",
    )


_ACCESSES: Final = (
    ("loads", report.LOADED_PER_SECTOR, report.LOADED_SECTORS),
    ("stores", report.STORED_PER_SECTOR, report.STORED_SECTORS),
)


def _waste(one: LaunchMetrics) -> Iterator[Finding]:
    everything = one.metrics.get(report.CACHE_SECTORS, 0.0)
    for name, metric, sectors in _ACCESSES:
        used = one.metrics.get(metric, 0.0)
        moved = one.metrics.get(sectors)
        if moved is not None and moved < _LEAST_MOVED * everything:
            continue
        if 0 < used < _WASTE * _SECTOR_BYTES:
            evidence = [Figure(name="bytes_per_sector", value=used)]
            if moved is not None:
                evidence.append(Figure(name="sectors", value=moved))
            yield Finding(
                kind=FindingKind.STRIDED_ACCESS,
                severity=Severity.WARNING,
                message=f"{one.kernel}: global {name} use {used:.0f} of each {_SECTOR_BYTES} bytes "
                "that are moved",
                evidence=tuple(evidence),
                hint="let neighbouring threads touch neighbouring data",
            )
