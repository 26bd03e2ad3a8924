"""Profiles: what a correct candidate's kernels do with the device while one workload runs.

Measured by hardware counters where they are open, else read from object code and times. Reported
by a process that ran the candidate: for people and models to read, no part of fitness.
"""

from dataclasses import dataclass
from typing import Final

from kernel_foundry.domain.finding import Figure

MOST_KERNELS: Final = 8
"""Kernels of a profile, those that take longest."""
MOST_LINES: Final = 5
MOST_STALLS: Final = 5
PROFILE_SECONDS: Final = 120.0
"""Seconds that a profiler may take for a single candidate that a user asks about."""
NEAR_BEST: Final = 1.1
"""A candidate has a profile if it takes at most so many times as long as the best one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A named share of a peak or of a whole, from 0."""

    name: str
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HotLine:
    """A line of source where kernels spend their time."""

    line: int
    """1-based."""
    share: float
    """Share of the samples of all profiled kernels, weighted by their times."""
    file: str = ""
    """Included header; empty: the candidate's device code."""
    stall: str = ""
    """The commonest reason why warps wait there; empty: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelProfile:
    """One kernel of a call."""

    kernel: str
    time_ns: float
    """Time of all its launches in one call; 0: not known."""
    launches: int = 1
    """In one call; of a library's kernels, those that were profiled."""
    is_library: bool = False
    """Launched by a library call of the plan."""
    units: tuple[Share, ...] = ()
    """How busy each unit is, as a share of its peak: "DRAM", "L2", "tensor pipe"; empty: no
    counters."""
    stalls: tuple[Share, ...] = ()
    """Why warps waited, as shares of all waiting, the largest first."""
    occupancy: float | None = None
    """Share of a multiprocessor's warps that ran; None: not measured."""
    possible_occupancy: float | None = None
    """Share that could run; None: not known."""
    occupancy_limit: str = ""
    """The resource that limits occupancy, such as "registers"; empty: none, or not known."""
    registers: int = 0
    """32-bit registers of a work-item; 0: not known."""
    shared_bytes: int = 0
    """Static and dynamic shared memory of a work-group."""
    moved_bytes: float | None = None
    """To and from device memory in one launch; None: not measured."""
    instructions: tuple[Share, ...] = ()
    """Kinds of instructions, as shares of those in object code, loops not counted; given where
    there are no counters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One candidate on one workload."""

    workload: str
    """The one whose call takes longest."""
    call_ns: float
    """Median time of a call, measured without a profiler."""
    minimal_bytes: int
    """Compulsory bytes: each input and output once."""
    tool: str = ""
    """Whose counters these are: "ncu" or "perf_event"; empty: none were read."""
    reason: str = ""
    """Why there are no counters; empty: there are."""
    kernels: tuple[KernelProfile, ...] = ()
    """Those that take longest first."""
    lines: tuple[HotLine, ...] = ()
    """Hottest first; empty: not sampled."""
    counters: tuple[Figure, ...] = ()
    """Counters of the processor in one call: "cycles", "instructions", "llc_misses"."""


def numbers_of(profile: Profile) -> tuple[float, ...]:
    """Return every number of a profile: shares, times, counts and bytes."""
    found: list[float | None] = [profile.call_ns, profile.minimal_bytes]
    for kernel in profile.kernels:
        found += (kernel.time_ns, kernel.launches, kernel.registers, kernel.shared_bytes)
        found += (kernel.occupancy, kernel.possible_occupancy, kernel.moved_bytes)
        found += (s.share for s in (*kernel.units, *kernel.stalls, *kernel.instructions))
    for line in profile.lines:
        found += (line.line, line.share)
    found += (counter.value for counter in profile.counters)
    return tuple(float(number) for number in found if number is not None)
