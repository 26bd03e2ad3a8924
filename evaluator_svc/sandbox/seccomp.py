"""A seccomp filter: no new processes, no sockets, no hand on other processes or on the host.

Threads stay possible. x86-64 only, as the whole project. Knows nothing of files (see `landlock`).
"""

import ctypes
import errno
from typing import Final

from evaluator_svc.sandbox.mechanism import last_error

_SECCOMP: Final = 317
_SET_MODE_FILTER: Final = 1
_ALL_THREADS: Final = 1

_REFUSED: Final = {
    "execve": 59, "execveat": 322, "fork": 57, "vfork": 58,
    "socket": 41, "connect": 42, "accept": 43, "bind": 49, "listen": 50, "accept4": 288,
    "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "process_madvise": 440,
    "kcmp": 312, "tkill": 200, "rt_sigqueueinfo": 129, "rt_tgsigqueueinfo": 297,
    "pidfd_send_signal": 424, "pidfd_open": 434, "pidfd_getfd": 438, "setpriority": 141,
    "shmget": 29, "shmat": 30, "shmctl": 31, "semget": 64, "msgget": 68, "mq_open": 240,
    "bpf": 321, "perf_event_open": 298, "userfaultfd": 323,
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
    "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "setns": 308, "unshare": 272,
    "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432,
    "fspick": 433, "mount_setattr": 442, "name_to_handle_at": 303, "open_by_handle_at": 304,
    "add_key": 248, "request_key": 249, "keyctl": 250, "quotactl": 179, "acct": 163,
    "init_module": 175, "delete_module": 176, "finit_module": 313, "kexec_load": 246,
    "kexec_file_load": 320, "reboot": 169, "swapon": 167, "swapoff": 168, "syslog": 103,
    "settimeofday": 164, "clock_settime": 227, "adjtimex": 159, "clock_adjtime": 305,
    "sethostname": 170, "setdomainname": 171, "iopl": 172, "ioperm": 173,
}  # fmt: skip
"""Answered with EPERM, whatever the arguments."""

_OWN_PROCESS_ONLY: Final = {"kill": 62, "tgkill": 234}
"""Allowed when the first argument is the own process: abort and raise use them."""
_OWN_OR_ZERO: Final = {"prlimit64": 302}
"""As above, 0 meaning oneself."""
_CLONE: Final = 56
_CLONE3: Final = 435
_CLONE_THREAD: Final = 0x10000

_ARCHITECTURE_X86_64: Final = 0xC000003E
_X32_BIT: Final = 0x40000000

_OFFSET_NUMBER: Final = 0
_OFFSET_ARCHITECTURE: Final = 4
_OFFSET_FIRST_ARGUMENT: Final = 16

_LOAD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
_IF_EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_IF_AT_LEAST: Final = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_IF_ANY_BIT: Final = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_RETURN: Final = 0x06  # BPF_RET | BPF_K

_ALLOW: Final = 0x7FFF0000
_KILL: Final = 0x80000000
_ERRNO: Final = 0x00050000


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint16),
        ("if_true", ctypes.c_uint8),
        ("if_false", ctypes.c_uint8),
        ("value", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("filter", ctypes.POINTER(_Instruction)))


def restrict(*, process_id: int) -> None:
    """Put the filter in force for every thread of the process.

    Args:
        process_id: The calling process, which stays free to signal itself.

    Raises:
        MechanismUnavailableError: the kernel refuses filters.
    """
    code = _filter(process_id)
    instructions = (_Instruction * len(code))(*(_Instruction(*line) for line in code))
    program = _Program(length=len(code), filter=instructions)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(_SECCOMP, _SET_MODE_FILTER, _ALL_THREADS, ctypes.byref(program)) != 0:
        raise last_error("seccomp")


def _filter(process_id: int) -> list[tuple[int, int, int, int]]:
    """Return the program as (code, jump if true, jump if false, value) lines."""
    code = [
        (_LOAD, 0, 0, _OFFSET_ARCHITECTURE),
        (_IF_EQUAL, 1, 0, _ARCHITECTURE_X86_64),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _OFFSET_NUMBER),
        (_IF_AT_LEAST, 0, 1, _X32_BIT),
        (_RETURN, 0, 0, _KILL),
        # ENOSYS makes glibc fall back on clone, whose flags a filter can read.
        *_when(_CLONE3, [(_RETURN, 0, 0, _ERRNO | errno.ENOSYS)]),
        *_when(
            _CLONE,
            [
                (_LOAD, 0, 0, _OFFSET_FIRST_ARGUMENT),
                (_IF_ANY_BIT, 0, 1, _CLONE_THREAD),
                (_RETURN, 0, 0, _ALLOW),
                (_RETURN, 0, 0, _ERRNO | errno.EPERM),
            ],
        ),
    ]
    for number in _OWN_PROCESS_ONLY.values():
        code += _when(number, _if_first_argument_in((process_id,)))
    for number in _OWN_OR_ZERO.values():
        code += _when(number, _if_first_argument_in((0, process_id)))
    for number in _REFUSED.values():
        code += _when(number, [(_RETURN, 0, 0, _ERRNO | errno.EPERM)])
    return [*code, (_RETURN, 0, 0, _ALLOW)]


def _when(number: int, body: list[tuple[int, int, int, int]]) -> list[tuple[int, int, int, int]]:
    """Return `body`, which must end in returns, done for system call `number` only."""
    return [(_IF_EQUAL, 0, len(body), number), *body]


def _if_first_argument_in(values: tuple[int, ...]) -> list[tuple[int, int, int, int]]:
    lines = [(_LOAD, 0, 0, _OFFSET_FIRST_ARGUMENT)]
    for value in values:
        lines += [(_IF_EQUAL, 0, 1, value), (_RETURN, 0, 0, _ALLOW)]
    return [*lines, (_RETURN, 0, 0, _ERRNO | errno.EPERM)]
