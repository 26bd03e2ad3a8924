"""How a builder or runner locks itself in, and what of it is in force.

Covered, once `confine` has returned: reading beyond the interpreter, its packages and the
system's libraries; writing beyond one scratch folder; new processes; sockets; signals to,
tracing of and memory access to other processes; memory, file size and CPU time. Not covered:
the process's own memory (a kernel on the CPU device runs in it and can forge what the process
says), denial of service within the limits, and bugs of the kernel itself. Threads that a driver
started before (CUDA, which has to be opened first) keep their files and capabilities: Landlock
holds for the calling thread and those to come. Device code cannot reach them.

Knows nothing of device code.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass

from evaluator_svc.sandbox import landlock, limits, seccomp
from evaluator_svc.sandbox.mechanism import MechanismUnavailableError
from kernel_foundry.domain.device import IsolationReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """What a process is left with."""

    readable: tuple[str, ...]
    """Files and folders it may read."""
    devices: tuple[str, ...]
    """Device nodes it may use."""
    scratch: str
    """The one folder it may write to."""
    memory_bytes: int
    """Private writable memory, on top of what the process has."""
    cpu_seconds: int
    """CPU time of all its threads together."""
    file_bytes: int
    """Size of any file it writes."""


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
    steps: dict[str, Callable[[], None]] = {
        "landlock": lambda: landlock.restrict(
            readable=confinement.readable,
            writable=(confinement.scratch,),
            devices=confinement.devices,
        ),
        "rlimits": lambda: limits.limit(
            memory_bytes=confinement.memory_bytes,
            cpu_seconds=confinement.cpu_seconds,
            file_bytes=confinement.file_bytes,
        ),
        "capabilities": limits.drop_capabilities,
        # Last: it refuses calls that the steps before need.
        "seccomp": lambda: seccomp.restrict(process_id=os.getpid()),
    }
    mechanisms = list(outer)
    missing = []
    for name, step in steps.items():
        try:
            step()
        except MechanismUnavailableError as error:
            missing.append(f"{name}: {error}")
        else:
            mechanisms.append(name)
    return IsolationReport(mechanisms=tuple(mechanisms), missing=tuple(missing))


def is_sufficient(report: IsolationReport) -> bool:
    """Return whether files, processes and network are all locked."""
    files = {"bubblewrap", "landlock"} & set(report.mechanisms)
    return bool(files) and "seccomp" in report.mechanisms
