"""Kernels of a profile from ncu's metrics, and the lines where warps were found."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from evaluator_svc.tools import profile_report as report
from evaluator_svc.tools.profile_findings import BUSY
from evaluator_svc.tools.profile_report import LaunchMetrics
from evaluator_svc.tools.source_page import LineSamples, SourceLine
from kernel_foundry.domain.kernel_time import KernelTime
from kernel_foundry.domain.profile import (
    MOST_KERNELS,
    MOST_LINES,
    MOST_STALLS,
    HotLine,
    KernelProfile,
    Share,
)
from kernel_foundry.languages.cuda import CUDA

_UNITS: Final = (
    ("DRAM", report.MEMORY_SHARE),
    ("L2", report.CACHE_SHARE),
    ("L1 and shared memory", report.FIRST_CACHE_SHARE),
    ("SM", report.COMPUTE_SHARE),
    ("tensor pipe", report.TENSOR_PIPE),
    ("FMA pipe", report.FMA_PIPE),
    ("ALU pipe", report.ALU_PIPE),
    ("LSU pipe", report.LSU_PIPE),
    ("special functions", report.SPECIAL_PIPE),
    ("issue slots", report.ISSUE_SLOTS),
)
_BINDING_UNITS: Final = ("DRAM", "SM", "tensor pipe")
_NO_STALL: Final = "selected"
"""A warp that was found at work."""
_BARRIER: Final = "barrier"


def counted_kernels(
    launches: Sequence[LaunchMetrics], own: Collection[str], times: Sequence[KernelTime]
) -> tuple[KernelProfile, ...]:
    """Return the kernels that take longest; a kernel's figures are those of its longest launch.

    Args:
        launches: As measured; of a call with many, the first ones.
        own: Names of the candidate's kernels; others are a library's.
        times: Of the kernels of a plan with several, measured without a profiler.
    """
    by_name: dict[str, list[LaunchMetrics]] = {}
    for launch in launches:
        by_name.setdefault(launch.kernel, []).append(launch)
    unprofiled = {time.kernel: time for time in times}
    kernels = [
        _kernel(name, measured, unprofiled.get(name), is_library=name not in own)
        for name, measured in by_name.items()
    ]
    return tuple(sorted(kernels, key=lambda kernel: -kernel.time_ns)[:MOST_KERNELS])


def _kernel(
    name: str, measured: list[LaunchMetrics], time: KernelTime | None, *, is_library: bool
) -> KernelProfile:
    longest = max(measured, key=lambda launch: launch.time_ns)
    metrics = longest.metrics
    launch_count = len(measured) if time is None else time.launches
    possible = _share(metrics, report.POSSIBLE_OCCUPANCY)
    return KernelProfile(
        kernel=name,
        is_library=is_library,
        launches=launch_count,
        time_ns=launch_count * sum(m.time_ns for m in measured) / len(measured),
        units=tuple(
            Share(name=unit, share=share)
            for unit, metric in _UNITS
            if (share := _share(metrics, metric)) is not None
        ),
        stalls=tuple(
            Share(name=reason, share=share) for reason, share in longest.stalls[:MOST_STALLS]
        ),
        occupancy=_share(metrics, report.ACHIEVED_OCCUPANCY),
        possible_occupancy=possible,
        occupancy_limit=_occupancy_limit(metrics) if possible is not None and possible < 1 else "",
        registers=int(metrics.get(report.REGISTERS, 0)),
        shared_bytes=int(
            metrics.get(report.STATIC_SHARED, 0) + metrics.get(report.DYNAMIC_SHARED, 0)
        ),
        moved_bytes=_moved_bytes(metrics),
    )


def _share(metrics: Mapping[str, float], name: str) -> float | None:
    percent = metrics.get(name)
    return None if percent is None else max(percent, 0.0) / 100


def _moved_bytes(metrics: Mapping[str, float]) -> float | None:
    read, written = metrics.get(report.BYTES_READ), metrics.get(report.BYTES_WRITTEN)
    return None if read is None or written is None else read + written


def _occupancy_limit(metrics: Mapping[str, float]) -> str:
    known = {what: metrics[name] for name, what in report.LIMITS.items() if name in metrics}
    return min(known, key=lambda what: known[what], default="")


def hot_lines(
    samples: Mapping[SourceLine, LineSamples], kernels: Sequence[KernelProfile]
) -> tuple[HotLine, ...]:
    """Return the lines with most samples, each kernel weighted by its time.

    Samples of warps at a barrier do not count where a unit is busy: producers of tiles that wait
    for the end are found at it all the time, and take nothing from that unit.
    """
    total_ns = sum(kernel.time_ns for kernel in kernels)
    weights = {k.kernel: k.time_ns / total_ns for k in kernels if total_ns > 0}
    busy = {kernel.kernel for kernel in kernels if _is_busy(kernel)}
    counted = {
        line: found.without(_BARRIER) if line.kernel in busy else found
        for line, found in samples.items()
    }
    of_kernel: Counter[str] = Counter()
    for line, found in counted.items():
        of_kernel[line.kernel] += found.total
    shares: dict[tuple[str, int], float] = {}
    reasons: dict[tuple[str, int], Counter[str]] = {}
    for line, found in counted.items():
        if not found.total:
            continue
        place = ("" if line.file == CUDA.source_file else line.file, line.line)
        share = weights.get(line.kernel, 0.0) * found.total / of_kernel[line.kernel]
        shares[place] = shares.get(place, 0.0) + share
        reasons.setdefault(place, Counter()).update(found.reasons)
    return tuple(
        HotLine(file=file, line=number, share=share, stall=_main_stall(reasons[file, number]))
        for (file, number), share in sorted(shares.items(), key=lambda item: -item[1])[:MOST_LINES]
        if share > 0
    )


def _is_busy(kernel: KernelProfile) -> bool:
    return any(u.share >= BUSY for u in kernel.units if u.name in _BINDING_UNITS)


def _main_stall(reasons: Counter[str]) -> str:
    waiting = Counter({name: n for name, n in reasons.items() if name != _NO_STALL and n > 0})
    return next((name for name, _ in waiting.most_common(1)), "")
