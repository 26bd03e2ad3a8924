"""Who a process is: its id alone may be that of a later process, or of one on another host."""

import os
import socket
import uuid
from functools import cache
from pathlib import Path
from typing import Final

from kernel_foundry.domain.archive import LeaseHolder

_START_FIELD: Final = 19
"""Of /proc/PID/stat behind the command's name: starttime (proc_pid_stat(5))."""


def new_holder() -> LeaseHolder:
    """Return a holder for a loop of this process, with a token that no other has."""
    process_id = os.getpid()
    return LeaseHolder(
        token=uuid.uuid4().hex,
        host=socket.gethostname(),
        process_id=process_id,
        process_start=_start(process_id) or 0,
        kernel=_boot_and_namespace(),
    )


def is_gone(holder: LeaseHolder) -> bool:
    """Return whether the holder's process can be seen from here to have ended."""
    return is_visible(holder) and _start(holder.process_id) != holder.process_start


def is_visible(holder: LeaseHolder) -> bool:
    """Return whether the holder's process id means its process here: same boot and namespace."""
    return holder.kernel == _boot_and_namespace()


def is_gone_from_host(holder: LeaseHolder) -> bool:
    """Return whether the holder's process has ended, or its host was started again since.

    Only for what is kept on the host itself: hosts of several sites may have one name.
    """
    boot, ours = (kernel.partition("/")[0] for kernel in (holder.kernel, _boot_and_namespace()))
    return is_gone(holder) or (holder.host == socket.gethostname() and boot != ours)


@cache
def _boot_and_namespace() -> str:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot}/{Path('/proc/self/ns/pid').stat().st_ino}"


def _start(process_id: int) -> int | None:
    """When a process started, in ticks since boot; None: it has ended."""
    try:
        text = Path(f"/proc/{process_id}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] == "Z" else int(fields[_START_FIELD])
