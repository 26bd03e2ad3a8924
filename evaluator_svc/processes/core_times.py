"""How long the threads of a process had a core, and how long they waited for one.

As the scheduler of Linux counts it: no program can change what is told of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreTimes:
    """Nanoseconds of each thread of a process and of all below it, by thread."""

    on_core: Mapping[int, int]
    waiting: Mapping[int, int]
    """For a core that others had; sleeping is no waiting."""

    @classmethod
    def of(cls, process_id: int) -> Self:
        """Return the times of now; of no thread where Linux does not tell them.

        bubblewrap has the process that it wraps as its grandchild.
        """
        on_core: dict[int, int] = {}
        waiting: dict[int, int] = {}
        processes = [process_id]
        while processes:
            for task in _tasks(processes.pop()):
                counted = _read(task / "schedstat").split()
                if len(counted) >= 2:
                    on_core[int(task.name)], waiting[int(task.name)] = map(int, counted[:2])
                processes += map(int, _read(task / "children").split())
        return cls(on_core=on_core, waiting=waiting)

    def busiest_since(self, before: "CoreTimes") -> float:
        """Return the longest time that a single thread had a core."""
        return max(_grown(before.on_core, self.on_core), default=0.0)

    def on_core_since(self, before: "CoreTimes") -> float:
        """Return how long all threads together had a core."""
        return sum(_grown(before.on_core, self.on_core))

    def longest_wait_since(self, before: "CoreTimes") -> float:
        """Return the longest time that a single thread waited."""
        return max(_grown(before.waiting, self.waiting), default=0.0)

    def waiting_since(self, before: "CoreTimes") -> float:
        """Return how long all threads together waited."""
        return sum(_grown(before.waiting, self.waiting))


def _grown(before: Mapping[int, int], after: Mapping[int, int]) -> list[float]:
    return [float(count - before.get(thread, 0)) for thread, count in after.items()]


def _tasks(process_id: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{process_id}/task").iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return []


def _read(path: Path) -> str:
    """Return the text of an entry; "" if the thread has just ended, or has no such entry."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
