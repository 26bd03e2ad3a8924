"""How a builder, inspector or runner locks itself in, and what of it is in force.

Covered, once `confine` has returned:
* files: reading beyond the interpreter, its packages and the system's libraries, writing beyond
  one scratch folder, attributes of any file; no device nodes but its own device's (SYCL: all of
  `/dev/dri`);
* processes: starting one, signalling, tracing, reading or pacing another, `/proc` of another;
* the network, and every other socket than the one to the supervisor, which takes no descriptors;
* named shared memory, queues, keyrings, mounts, namespaces, io_uring, bpf, perf, userfaultfd;
* amounts: private memory, CPU time, size of a file, open files, core dumps; what it prints is a
  file like others; the scratch folder is a file system of fixed size inside bubblewrap, else the
  supervisor looks after it, as after memory that was made read-only (see `usage_watch`).

Not covered: the process's own memory (a kernel on the CPU device runs in it and can forge what the
process says: nothing that it says is believed); names and sizes of files it may not read; the
number of threads beyond what memory allows; time on the device and denial of service within the
limits; side channels; bugs of the Linux kernel and of drivers. Threads that a driver started before
(CUDA, which has to be opened first) keep their files and capabilities: Landlock and capabilities
are of the calling thread and those to come, seccomp holds for all. Device code cannot reach them.
"""

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evaluator_svc.sandbox import landlock, limits, seccomp
from evaluator_svc.sandbox.mechanism import MechanismUnavailableError
from evaluator_svc.sandbox.system_calls import CallFilter
from kernel_foundry.domain.device import IsolationLimit, IsolationReport

_OWN_PROCESS: Final = "/proc/self"


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """What a process is left with."""

    readable: tuple[str, ...]
    """Files and folders it may read."""
    devices: tuple[str, ...]
    """Device nodes it may use."""
    scratch: str
    """The one folder it may write to."""
    makes_folders: bool
    """Whether there may be folders in it: compilers make some, and a GPU's driver may. A kernel on
    the CPU device would hide files below paths too long to look at, or nest more than can be
    removed."""
    memory_bytes: int
    """Private writable memory, on top of what the process has."""
    cpu_seconds: int
    """CPU time of all its threads together."""
    file_bytes: int
    """Size of any file it writes, its output among them."""
    open_files: int
    scratch_bytes: int
    """Of the whole scratch folder; kept by who starts the process."""
    calls: CallFilter
    """Which system calls are left; with `REFUSE_LISTED_BUT_PROGRAMS` what it may read it may
    execute, and it may remove and rename in its scratch folder."""

    @property
    def starts_programs(self) -> bool:
        """Whether it may start other programs."""
        return self.calls is CallFilter.REFUSE_LISTED_BUT_PROGRAMS


def confine(confinement: Confinement, *, outer: tuple[str, ...]) -> IsolationReport:
    """Lock the calling process in for good, before any thread or driver starts where it can be.

    Args:
        confinement: What it is left with.
        outer: Mechanisms in force already, from outside.

    Returns:
        The mechanisms in force and, with its reason, each that could not be had.
    """
    limits.end_with_parent()
    limits.forbid_new_privileges()
    # Never closed: a rule is about an inode, and `/proc` makes another one for an entry that
    # nobody holds.
    with contextlib.suppress(OSError):  # a host without it has nothing to be shut out of
        os.open(_OWN_PROCESS, os.O_PATH | os.O_CLOEXEC)
    interface = landlock.version()  # while it may still be asked
    mechanisms = list(outer)
    missing = []
    for name, step in _steps(confinement).items():
        try:
            step()
        except MechanismUnavailableError as error:
            missing.append(f"{name}: {error}")
        else:
            mechanisms.append(name)
    if "landlock" in mechanisms:
        missing += landlock.shortcomings(interface)
    return IsolationReport(
        mechanisms=tuple(mechanisms),
        missing=tuple(missing),
        rules=tuple(_rules(confinement, mechanisms, interface)),
        limits=_limits(confinement) if "rlimits" in mechanisms else (),
    )


def _steps(confinement: Confinement) -> dict[str, Callable[[], None]]:
    return {
        "landlock": lambda: landlock.restrict(
            readable=confinement.readable,
            writable=(confinement.scratch,),
            devices=confinement.devices,
            makes_folders=confinement.makes_folders,
            starts_programs=confinement.starts_programs,
        ),
        "rlimits": lambda: limits.limit(
            memory_bytes=confinement.memory_bytes,
            cpu_seconds=confinement.cpu_seconds,
            file_bytes=confinement.file_bytes,
            open_files=confinement.open_files,
        ),
        "capabilities": limits.drop_capabilities,
        # Last: it refuses calls that the steps before need.
        "seccomp": lambda: seccomp.restrict(confinement.calls, process_id=os.getpid()),
    }


def _rules(confinement: Confinement, mechanisms: list[str], interface: int) -> list[str]:
    """In words what the mechanisms in force do."""
    devices = ", ".join(path for path in confinement.devices if Path(path).exists())
    said = {
        "bubblewrap": "bubblewrap: namespaces of its own, no network, read-only file system",
        "landlock": f"landlock: interface {interface}, {len(confinement.readable)} paths"
        f" to read, one to write ({confinement.scratch}), devices {devices}",
        "capabilities": "capabilities: none left",
        "seccomp": f"seccomp: {seccomp.describe(confinement.calls)}",
    }
    return [text for name, text in said.items() if name in mechanisms]


def _limits(confinement: Confinement) -> tuple[IsolationLimit, ...]:
    amounts = {
        "memory_bytes": confinement.memory_bytes,
        "cpu_seconds": confinement.cpu_seconds,
        "file_bytes": confinement.file_bytes,
        "scratch_bytes": confinement.scratch_bytes,
        "open_files": confinement.open_files,
    }
    if not confinement.starts_programs:
        amounts["processes"] = 0
    return tuple(IsolationLimit(name=name, value=value) for name, value in amounts.items())
