"""Whether other programs had the host's cores while times were taken.

Source: proc(5) on /proc/stat, /proc/PID/stat and /proc/PID/task/TID/children.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kernel_foundry.domain.finding import Figure, Finding, FindingKind, Severity

_PROC: Final = Path("/proc")
_BUSY_FIELDS: Final = (0, 1, 2, 5, 6, 7)
"""Of the line "cpu": user, nice, system, irq, softirq, steal."""
_TIME_FIELDS: Final = slice(11, 15)
"""Of a process, behind its name: utime, stime, and those of children that it waited for."""
_LEAST_SECONDS: Final = 0.1
"""Below that the clock of /proc, which ticks in 10 ms, is too coarse."""
_SPARE_CORES: Final = 0.3
"""What the system itself and the clock's ticks may take on top of all cores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLoad:
    """What ran beside a measurement."""

    other_cores: float
    """Cores that other programs took on average."""
    core_count: int
    """Of the host."""
    needed_cores: int
    """Threads of the measurement itself."""

    @property
    def is_loaded(self) -> bool:
        """True when others took cores that the measurement needed."""
        return self.other_cores + self.needed_cores > self.core_count + _SPARE_CORES

    @property
    def text(self) -> str:
        """For people."""
        return f"other programs took {self.other_cores:.1f} of {self.core_count} cores"

    def finding(self) -> Finding | None:
        """Return what is to be said of times of a loaded moment; None when it was not one."""
        if not self.is_loaded:
            return None
        return Finding(
            kind=FindingKind.LOADED_HOST,
            severity=Severity.INFO,
            message=f"{self.text} while times were taken: they are of a loaded moment",
            evidence=(
                Figure(name="other_cores", value=self.other_cores),
                Figure(name="core_count", value=float(self.core_count)),
            ),
            hint="end other work on this host, or measure again with --fresh-baselines",
        )


class LoadMeter:
    """Looks at the host from its making on.

    Args:
        needed_cores: Threads of what is measured.
        core_count: Of the host.
        proc: The system's folder of processes.
        clock: Seconds.
    """

    def __init__(
        self,
        needed_cores: int,
        *,
        core_count: int | None = None,
        proc: Path = _PROC,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._needed_cores = needed_cores
        self._core_count = core_count or os.cpu_count() or 1
        self._proc = proc
        self._clock = clock
        self._start_s = clock()
        self._start = self._ticks()

    def load(self) -> HostLoad | None:
        """Return what ran since; None where that is unknown, or too short a time to tell."""
        seconds, ticks = self._clock() - self._start_s, self._ticks()
        if seconds < _LEAST_SECONDS or ticks is None or self._start is None:
            return None
        others = (ticks[0] - self._start[0]) - (ticks[1] - self._start[1])
        return HostLoad(
            other_cores=max(others, 0) / os.sysconf("SC_CLK_TCK") / seconds,
            core_count=self._core_count,
            needed_cores=self._needed_cores,
        )

    def is_loaded(self) -> bool:
        """Return whether others are known to have had cores that the measurement needed."""
        load = self.load()
        return load is not None and load.is_loaded

    def _ticks(self) -> tuple[int, int] | None:
        """The ticks of all programs, and of this process and its descendants."""
        try:
            line = (self._proc / "stat").read_text().partition("\n")[0]
            fields = [int(field) for field in line.split()[1:]]
            busy = sum(fields[i] for i in _BUSY_FIELDS)
            own = sum(self._ticks_of(process) for process in self._family(os.getpid()))
        except (OSError, ValueError, IndexError):
            return None
        return busy, own

    def _ticks_of(self, process: int) -> int:
        with contextlib.suppress(OSError):  # it may have ended since
            # Its name may hold anything, and ends with the last parenthesis.
            fields = (self._proc / str(process) / "stat").read_text().rpartition(")")[2].split()
            return sum(int(field) for field in fields[_TIME_FIELDS])
        return 0

    def _family(self, process: int) -> Iterator[int]:
        yield process
        for thread in (self._proc / str(process) / "task").glob("*/children"):
            with contextlib.suppress(OSError):
                for child in thread.read_text().split():
                    yield from self._family(int(child))
