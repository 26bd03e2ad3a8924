"""Counters of the processor for threads of another process, by Linux's perf_event_open.

Threads are counted from outside: a sandboxed process may not open counters itself.
Source: perf_event_open(2).
"""

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

NAME: Final = "perf_event"
_SYSTEM_CALLS: Final = {"x86_64": 298, "aarch64": 241}
_PARANOID: Final = Path("/proc/sys/kernel/perf_event_paranoid")
_TIMES: Final = 3
"""Ask for the time enabled and the time counted beside the count: counters may take turns."""
_FLAGS: Final = (1 << 1) | (1 << 5) | (1 << 6)
"""Count in threads that are started later, and neither the kernel nor a hypervisor."""
_CLOSE_ON_EXEC: Final = 8
_READ: Final = struct.Struct("QQQ")
_NO_COUNTERS: Final = (errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP)
_NOT_ALLOWED: Final = (errno.EACCES, errno.EPERM)


@dataclass(frozen=True, slots=True, kw_only=True)
class PerfEvent:
    """What is counted, in the kernel's numbers."""

    name: str
    type: int
    config: int


PROCESSOR_EVENTS: Final = (
    PerfEvent(name="cycles", type=0, config=0),
    PerfEvent(name="instructions", type=0, config=1),
    PerfEvent(name="llc_misses", type=0, config=3),
)


class _Attributes(ctypes.Structure):
    """`struct perf_event_attr`, its first version and what follows up to config2."""

    _fields_ = (
        ("type", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("config", ctypes.c_uint64),
        ("sample_period", ctypes.c_uint64),
        ("sample_type", ctypes.c_uint64),
        ("read_format", ctypes.c_uint64),
        ("flags", ctypes.c_uint64),
        ("wakeup_events", ctypes.c_uint32),
        ("bp_type", ctypes.c_uint32),
        ("config1", ctypes.c_uint64),
        ("config2", ctypes.c_uint64),
    )


class PerfCounters:
    """Open counters, which count from now on; a context manager that closes them.

    Args:
        descriptors: By event, one for each thread.
    """

    def __init__(self, descriptors: Mapping[str, Sequence[int]]) -> None:
        self._descriptors = descriptors

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def read(self) -> dict[str, float]:
        """Return what was counted so far, by event, all threads together."""
        return {
            name: sum(_count(descriptor) for descriptor in descriptors)
            for name, descriptors in self._descriptors.items()
        }

    def close(self) -> None:
        """Stop counting."""
        for descriptors in self._descriptors.values():
            for descriptor in descriptors:
                os.close(descriptor)
        self._descriptors = {}


def open_counters(
    thread_ids: Iterable[int], events: Sequence[PerfEvent] = PROCESSOR_EVENTS
) -> PerfCounters | str:
    """Return counters of threads and of those that they start, or why there are none.

    An event that the processor has not is left out; a thread that has just ended is no reason.
    """
    number = _SYSTEM_CALLS.get(platform.machine())
    if number is None:
        return f"perf_event: not known on {platform.machine()}"
    threads = tuple(thread_ids)
    opened: dict[str, list[int]] = {}
    codes: list[int] = []
    for event in events:
        for thread_id in threads:
            found = _open(number, event, thread_id)
            if found >= 0:
                opened.setdefault(event.name, []).append(found)
            elif -found != errno.ESRCH:
                codes.append(-found)
    if opened:
        return PerfCounters(opened)
    return _refusal(codes[0] if codes else errno.ESRCH)


def closed_counters() -> str:
    """Return why this very process could not open counters; empty: it can."""
    opened = open_counters([0])
    if isinstance(opened, str):
        return opened
    opened.close()
    return ""


def _open(number: int, event: PerfEvent, thread_id: int) -> int:
    """A descriptor, or a negative error code."""
    attributes = _Attributes(
        type=event.type,
        size=ctypes.sizeof(_Attributes),
        config=event.config,
        read_format=_TIMES,
        flags=_FLAGS,
    )
    library = ctypes.CDLL(None, use_errno=True)
    any_core, no_group = ctypes.c_long(-1), ctypes.c_long(-1)
    found: int = library.syscall(
        ctypes.c_long(number), ctypes.byref(attributes), ctypes.c_long(thread_id),
        any_core, no_group, ctypes.c_ulong(_CLOSE_ON_EXEC),
    )  # fmt: skip
    return found if found >= 0 else -ctypes.get_errno()


def _count(descriptor: int) -> float:
    value, enabled, running = _READ.unpack(os.read(descriptor, _READ.size))
    return value * enabled / running if running else 0.0


def _refusal(code: int) -> str:
    if code in _NO_COUNTERS:
        return "perf_event: no hardware counters here, as in most virtual machines"
    if code in _NOT_ALLOWED:
        try:
            level = _PARANOID.read_text(encoding="ascii").strip()
        except OSError:
            level = "not told"
        return f"perf_event: not allowed (perf_event_paranoid is {level})"
    return f"perf_event: {os.strerror(code)}"
