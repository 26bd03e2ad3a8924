"""Attempts that are single system calls: other processes, ways into the system, namespaces.

Python has no names for them. Arguments are such that a call which is not refused does nothing that
lasts. The others are in `attempts.py`.
"""

import ctypes
import errno
import os
from collections.abc import Callable, Collection, Sequence
from typing import Final

_PTRACE: Final = 101
_PTRACE_SEIZE: Final = 0x4206
_PTRACE_DETACH: Final = 17
_SHMGET: Final = 29
_SHMCTL: Final = 31
_MOUNT: Final = 165
_UMOUNT: Final = 166
_KEYCTL: Final = 250
_GET_KEYRING: Final = 0
_PROCESS_KEYRING: Final = -2
_UNSHARE: Final = 272
_CLONE_FS: Final = 0x200
_PERF_EVENT_OPEN: Final = 298
_SETNS: Final = 308
_PROCESS_VM_READV: Final = 310
_KCMP: Final = 312
_BPF: Final = 321
_BPF_MAP_CREATE: Final = 0
_USERFAULTFD: Final = 323
_USER_MODE_ONLY: Final = 1
_IO_URING_SETUP: Final = 425
_PIDFD_OPEN: Final = 434
_PIDFD_GETFD: Final = 438

_libc: Final = ctypes.CDLL(None, use_errno=True)


def _call(number: int, *arguments: object, reached: Collection[int] = ()) -> int:
    """A system call's result.

    Args:
        number: Which.
        arguments: Its arguments; numbers are passed in full width.
        reached: Errors that only a call which is not refused can come to.

    Raises:
        OSError: it was refused.
    """
    full = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = int(_libc.syscall(ctypes.c_long(number), *full))
    if result < 0:
        code = ctypes.get_errno()
        if code not in reached:
            raise OSError(code, os.strerror(code))
    return result


def _close(descriptor: int) -> None:
    if descriptor >= 0:
        os.close(descriptor)


def _first(others: Sequence[int], step: Callable[[int], object]) -> None:
    """Do `step` with one of several processes; raises as the last of them does."""
    error = OSError(errno.ESRCH, "no other process")
    for process in others:
        try:
            step(process)
        except OSError as refusal:
            error = refusal
        else:
            return
    raise error


def _trace(process: int) -> None:
    _call(_PTRACE, _PTRACE_SEIZE, process, 0, 0)
    _libc.syscall(_PTRACE, _PTRACE_DETACH, process, 0, 0)


def _read_memory(process: int) -> None:
    """Read where nothing lies: only who may read at all is told so."""
    here = ctypes.create_string_buffer(8)
    local = (ctypes.c_size_t * 2)(ctypes.addressof(here), 8)
    remote = (ctypes.c_size_t * 2)(8, 8)
    _call(_PROCESS_VM_READV, process, local, 1, remote, 1, 0, reached=(errno.EFAULT,))


def _take_descriptor(process: int) -> None:
    handle = _call(_PIDFD_OPEN, process, 0)
    try:
        _close(_call(_PIDFD_GETFD, handle, 0, 0))
    finally:
        os.close(handle)


def _mount(scratch: str) -> None:
    _call(_MOUNT, b"none", scratch.encode(), b"tmpfs", 0, None)
    _call(_UMOUNT, scratch.encode(), 0)


def _perf() -> None:
    attributes = (ctypes.c_uint32 * 32)(1, 128)  # a software event, of this size: the CPU clock
    attributes[10] = 0b1100001  # disabled, without system and hypervisor
    _close(_call(_PERF_EVENT_OPEN, attributes, 0, -1, -1, 0))


def _bpf() -> None:
    attributes = (ctypes.c_uint32 * 32)(2, 4, 4, 1)  # an array of one number
    _close(_call(_BPF, _BPF_MAP_CREATE, attributes, ctypes.sizeof(attributes)))


def _named_memory() -> None:
    segment = _call(_SHMGET, 0, 4096, 0o600)
    _call(_SHMCTL, segment, 0, None)


SYSTEM_CALL_ATTEMPTS: Final[dict[str, Callable[[str, Sequence[int]], None]]] = {
    "ptrace": lambda _, others: _first(others, _trace),
    "process_vm_readv": lambda _, others: _first(others, _read_memory),
    "pidfd_getfd": lambda _, others: _first(others, _take_descriptor),
    "kcmp": lambda *_: _void(_call(_KCMP, os.getpid(), os.getpid(), 0, 0, 0)),
    "mount": lambda scratch, _: _mount(scratch),
    "unshare": lambda *_: _void(_call(_UNSHARE, _CLONE_FS)),
    "setns": lambda *_: _void(_call(_SETNS, -1, 0, reached=(errno.EBADF,))),
    "io_uring": lambda *_: _close(_call(_IO_URING_SETUP, 1, ctypes.create_string_buffer(256))),
    "bpf": lambda *_: _bpf(),
    "perf_event": lambda *_: _perf(),
    "userfaultfd": lambda *_: _close(_call(_USERFAULTFD, _USER_MODE_ONLY)),
    "keyring": lambda *_: _void(
        _call(_KEYCTL, _GET_KEYRING, _PROCESS_KEYRING, 0, reached=(errno.ENOKEY,))
    ),
    "named_memory": lambda *_: _named_memory(),
}
"""By name; each gets the scratch folder and the processes to reach for."""


def _void(_: object) -> None:
    """Take a result that nobody needs."""
