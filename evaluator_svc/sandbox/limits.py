"""Resource limits of a process, and root's powers given up.

How much a process gets is in `confinement.py`.
"""

import ctypes
import resource
import signal
from pathlib import Path
from typing import Final

from evaluator_svc.sandbox.mechanism import MechanismUnavailableError, last_error

_RLIMIT_MSGQUEUE: Final = 12
_PR_SET_NO_NEW_PRIVS: Final = 38
_PR_SET_PDEATHSIG: Final = 1
_CAPSET: Final = 126
_CAPABILITY_VERSION_3: Final = 0x20080522


def end_with_parent() -> None:
    """Let Linux end this process with the thread that started it.

    A runner whose kernel never ends would outlive a supervisor that was killed.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL.value, 0, 0, 0)


def limit(*, memory_bytes: int, cpu_seconds: int, file_bytes: int, open_files: int) -> None:
    """Limit private writable memory, CPU time, written files and open files; no core dumps.

    `memory_bytes` come on top of what the process has: a driver, or torch, may be loaded already.
    RLIMIT_DATA and not RLIMIT_AS: drivers reserve address space that they never touch.

    Raises:
        MechanismUnavailableError: a limit is refused.
    """
    wanted = {
        resource.RLIMIT_DATA: _writable_bytes() + memory_bytes,
        resource.RLIMIT_CPU: cpu_seconds,
        resource.RLIMIT_FSIZE: file_bytes,
        resource.RLIMIT_NOFILE: open_files,
        resource.RLIMIT_CORE: 0,
        _RLIMIT_MSGQUEUE: 0,
    }
    for kind, value in wanted.items():
        _soft, hard = resource.getrlimit(kind)
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        try:
            resource.setrlimit(kind, (bound, bound))
        except (OSError, ValueError) as error:
            raise MechanismUnavailableError(str(error)) from error


def _writable_bytes() -> int:
    """What RLIMIT_DATA counts of this process today."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) << 10
    return 0


def forbid_new_privileges() -> None:
    """Let no program started from here gain privileges; locks of the unprivileged need it."""
    ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def drop_capabilities() -> None:
    """Give up every capability, so that a service run by root does not lend its powers.

    Raises:
        MechanismUnavailableError: Linux refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    if libc.syscall(_CAPSET, header, nothing) != 0:
        raise last_error("capset")
