"""Runs ncu on a command: how busy memory and arithmetic are, and what warps wait for."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from evaluator_svc.tools import profile_report as report
from evaluator_svc.tools.profile_report import KernelProfile, profiles
from evaluator_svc.tools.tool_run import absent, find, note, run
from kernel_foundry.domain.finding import Figure, Finding, FindingKind, Severity

_NAME: Final = "ncu"
_VARIABLE: Final = "KERNEL_FOUNDRY_NCU"
_ERROR: Final = re.compile(r"==ERROR== ([^\n]{1,300})")
_MAX_KERNELS: Final = 3
"""Told of, those that take longest first."""
_BUSY: Final = 0.6
"""Of a peak: above, that is what binds."""
_STALL_SHARE: Final = 0.3
_CONFLICT_SHARE: Final = 0.1
"""Of the passes over shared memory."""
_WASTE: Final = 0.6
"""Of a sector's bytes: fewer used are told."""
_UNBALANCED: Final = 0.7
"""Of the possible occupancy: less achieved is told."""
_SECTOR_BYTES: Final = 32
_SECONDS: Final = 120.0
"""After these the tool is ended."""


def profile(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    kernels: Sequence[str],
    launch_count: int = 1,
) -> tuple[Finding, ...]:
    """Return what the tool measures while the command runs; never empty, never raises for the tool.

    Args:
        command: What is run.
        environment: All of its environment.
        kernels: Names of the candidate's kernels; no other is looked at.
        launch_count: Launches of these that are measured.
    """
    tool = find(_NAME, _VARIABLE)
    if tool is None:
        return (absent(_NAME, _VARIABLE),)
    names = "|".join(re.escape(kernel) for kernel in kernels)
    options = (
        *("--clock-control", "none", "--cache-control", "all", "--csv", "--page", "raw"),
        *("--print-units", "base", "--kernel-name", f"regex:^(?:{names})$"),
        *("--launch-count", str(launch_count), "--metrics", ",".join(report.METRICS)),
    )
    try:
        done = run((tool, *options, *command), environment, seconds=_SECONDS)
    except OSError as error:
        return (note(f"{_NAME} was not used: {error.strerror}"),)
    found = profile_findings(done.output)
    if found:
        return found
    if done.was_stopped:
        return (note(f"{_NAME} measured nothing within {_SECONDS:.0f} s, and was ended"),)
    said = _ERROR.search(done.output)
    why = said[1].strip() if said else f"exit status {done.exit_status}, no kernel measured"
    return (note(f"{_NAME} failed: {why}"),)


def profile_findings(output: str) -> tuple[Finding, ...]:
    """Return the findings of a tool's output: several for each kernel, the longest first."""
    slowest: dict[str, KernelProfile] = {}
    for one in profiles(output):
        known = slowest.get(one.kernel)
        if known is None or one.time_ns > known.time_ns:
            slowest[one.kernel] = one
    ordered = sorted(slowest.values(), key=lambda one: -one.time_ns)[:_MAX_KERNELS]
    return tuple(finding for one in ordered for finding in _of_kernel(one))


def _of_kernel(one: KernelProfile) -> Iterator[Finding]:
    yield _use(one)
    yield from _waiting(one)
    yield from _conflicts(one)
    yield from _waste(one)
    yield from _unbalanced(one)


_EVIDENCE: Final = (
    ("gpu_time_ns", report.TIME, 1.0),
    ("dram_bytes_per_second", report.MEMORY_RATE, 1.0),
    ("dram_share", report.MEMORY_SHARE, 0.01),
    ("compute_share", report.COMPUTE_SHARE, 0.01),
    ("fma_pipe_share", report.FMA_PIPE, 0.01),
    ("tensor_pipe_share", report.TENSOR_PIPE, 0.01),
    ("achieved_occupancy", report.ACHIEVED_OCCUPANCY, 0.01),
    ("possible_occupancy", report.POSSIBLE_OCCUPANCY, 0.01),
)


def _use(one: KernelProfile) -> Finding:
    """How busy the device is: what binds, by its own counters."""
    numbers = {n: f * one.metrics[m] for n, m, f in _EVIDENCE if m in one.metrics}
    memory, compute = numbers.get("dram_share", 0.0), numbers.get("compute_share", 0.0)
    if max(memory, compute) < _BUSY:
        kind, hint = FindingKind.LATENCY_BOUND, "neither is busy: see what warps wait for"
    elif memory >= compute:
        kind, hint = FindingKind.MEMORY_BOUND, "move fewer bytes: fuse, keep data on chip"
    else:
        kind, hint = FindingKind.COMPUTE_BOUND, "fewer instructions: reuse loads, vectors, fma"
    rate = numbers.get("dram_bytes_per_second", 0.0)
    return Finding(
        kind=kind,
        severity=Severity.INFO,
        message=f"{one.kernel}, measured by ncu: {one.time_ns / 1e3:.1f} µs; memory at "
        f"{rate / 1e9:.0f} GB/s ({memory:.0%} of its peak), multiprocessors at {compute:.0%}, "
        f"matrix units at {numbers.get('tensor_pipe_share', 0.0):.0%}; occupancy "
        f"{numbers.get('achieved_occupancy', 0.0):.0%}",
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


def _waiting(one: KernelProfile) -> Iterator[Finding]:
    stalls = one.stalls
    if not stalls or stalls[0][1] < _STALL_SHARE:
        return
    reason, share = stalls[0]
    what, hint = _STALLS.get(reason, (reason.replace("_", " "), ""))
    yield Finding(
        kind=FindingKind.STALL,
        severity=Severity.INFO,
        message=f"{one.kernel}: {share:.0%} of the time that warps wait, they wait for {what}",
        evidence=tuple(Figure(name=f"stall_{name}", value=value) for name, value in stalls[:4]),
        hint=hint,
    )


def _conflicts(one: KernelProfile) -> Iterator[Finding]:
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


def _waste(one: KernelProfile) -> Iterator[Finding]:
    for name, metric in (("loads", report.LOADED_PER_SECTOR), ("stores", report.STORED_PER_SECTOR)):
        used = one.metrics.get(metric, 0.0)
        if 0 < used < _WASTE * _SECTOR_BYTES:
            yield Finding(
                kind=FindingKind.STRIDED_ACCESS,
                severity=Severity.WARNING,
                message=f"{one.kernel}: global {name} use {used:.0f} of each {_SECTOR_BYTES} bytes "
                "that are moved",
                evidence=(Figure(name="bytes_per_sector", value=used),),
                hint="let neighbouring threads touch neighbouring data",
            )


def _unbalanced(one: KernelProfile) -> Iterator[Finding]:
    achieved = one.metrics.get(report.ACHIEVED_OCCUPANCY, 0.0)
    possible = one.metrics.get(report.POSSIBLE_OCCUPANCY, 0.0)
    if possible <= 0 or achieved >= _UNBALANCED * possible:
        return
    yield Finding(
        kind=FindingKind.OCCUPANCY,
        severity=Severity.INFO,
        message=f"{one.kernel}: {possible:.0f} % of a multiprocessor's warps could run, "
        f"{achieved:.0f} % did",
        evidence=(
            Figure(name="achieved_occupancy", value=achieved / 100),
            Figure(name="possible_occupancy", value=possible / 100),
        ),
        hint="too few blocks, or blocks of very different length: more and smaller blocks",
    )
