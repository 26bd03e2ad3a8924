"""A seccomp filter: no new processes, no sockets, no hand on other processes or on the host.

Threads stay possible. x86-64 only, as the whole project. The calls are listed in
`system_calls`. Files are `landlock.py`'s.
"""

import ctypes
import errno
from typing import Final

from evaluator_svc.sandbox import system_calls
from evaluator_svc.sandbox.mechanism import last_error
from evaluator_svc.sandbox.system_calls import CallFilter

_SECCOMP: Final = 317
_SET_MODE_FILTER: Final = 1
_ALL_THREADS: Final = 1

_CLONE_THREAD: Final = 0x10000
_NEW_NAMESPACES: Final = 0x7E020000
"""Of mounts, cgroups, host names, IPC, users, processes and the network."""
_MAP_SHARED: Final = 0x01
_MAP_ANONYMOUS: Final = 0x20
_O_UNNAMED: Final = 0x400000
"""The bit of O_TMPFILE that is not part of O_DIRECTORY."""
_TERMINAL_INPUT: Final = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX."""
_IOCTL_KIND: Final = 0xFF00
_OF_INTERFACES: Final = 0x8900
"""What any socket can be asked about the host's network, the one to the supervisor too."""
_MAP_GROWS_DOWN: Final = 0x100
"""A stack to Linux, which RLIMIT_DATA does not count."""
_OF_OTHERS_BY_DESCRIPTOR: Final = (8, 10, 15, 1024, 1026)
"""F_SETOWN, F_SETSIG, F_SETOWN_EX: a descriptor sends any signal to any process. F_SETLEASE and
F_NOTIFY: news of what others do with files."""
_PRCTL_OPTIONS: Final = (15, 16, 0x53564D41)
"""PR_SET_NAME, PR_GET_NAME, PR_SET_VMA."""

_YOUNG: Final = 424
"""From here on calls are younger than the C libraries about, which try them and go on without:
answered with ENOSYS where they are not allowed."""

_ARCHITECTURE_X86_64: Final = 0xC000003E
_X32_BIT: Final = 0x40000000

_OFFSET_NUMBER: Final = 0
_OFFSET_ARCHITECTURE: Final = 4
_OFFSET_ARGUMENTS: Final = 16
_ARGUMENT_BYTES: Final = 8

_LOAD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
_IF_EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_IF_AT_LEAST: Final = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_IF_ANY_BIT: Final = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_AND: Final = 0x54  # BPF_ALU | BPF_AND | BPF_K
_RETURN: Final = 0x06  # BPF_RET | BPF_K

_ALLOW: Final = 0x7FFF0000
_KILL: Final = 0x80000000
_ERRNO: Final = 0x00050000

_Line = tuple[int, int, int, int]
"""Code, jump if true, jump if false, value."""

_ALLOWED: Final[_Line] = (_RETURN, 0, 0, _ALLOW)
_REFUSED: Final[_Line] = (_RETURN, 0, 0, _ERRNO | errno.EPERM)
_ABSENT: Final[_Line] = (_RETURN, 0, 0, _ERRNO | errno.ENOSYS)


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint16),
        ("if_true", ctypes.c_uint8),
        ("if_false", ctypes.c_uint8),
        ("value", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("filter", ctypes.POINTER(_Instruction)))


def restrict(calls: CallFilter, *, process_id: int) -> None:
    """Put the filter in force for every thread of the process.

    Args:
        calls: Which of them are left.
        process_id: The calling process, which stays free to signal itself.

    Raises:
        MechanismUnavailableError: Linux refuses filters.
    """
    install(_filter(calls, process_id))


def install(code: list[_Line]) -> None:
    """Put a filter in force for every thread of the process; raises as `restrict`."""
    instructions = (_Instruction * len(code))(*(_Instruction(*line) for line in code))
    program = _Program(length=len(code), filter=instructions)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(_SECCOMP, _SET_MODE_FILTER, _ALL_THREADS, ctypes.byref(program)) != 0:
        raise last_error("seccomp")


def describe(calls: CallFilter) -> str:
    """Return in words what the filter does."""
    if calls is CallFilter.ALLOW_LISTED:
        return f"{len(system_calls.ALLOWED)} system calls allowed, a few restricted, no others"
    return f"{len(_refused(calls))} system calls refused, a few restricted"


def _refused(calls: CallFilter) -> list[int]:
    kept = system_calls.PROGRAMS if calls is CallFilter.REFUSE_LISTED_BUT_PROGRAMS else ()
    return [number for name, number in system_calls.REFUSED.items() if name not in kept]


def _filter(calls: CallFilter, process_id: int) -> list[_Line]:
    code: list[_Line] = [
        (_LOAD, 0, 0, _OFFSET_ARCHITECTURE),
        (_IF_EQUAL, 1, 0, _ARCHITECTURE_X86_64),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _OFFSET_NUMBER),
        (_IF_AT_LEAST, 0, 1, _X32_BIT),
        (_RETURN, 0, 0, _KILL),
    ]
    if calls is CallFilter.ALLOW_LISTED:
        for number in system_calls.ALLOWED.values():
            code += _when(number, [_ALLOWED])
    starts_programs = calls is CallFilter.REFUSE_LISTED_BUT_PROGRAMS
    code += _restricted(process_id, starts_programs=starts_programs)
    if calls is CallFilter.ALLOW_LISTED:
        code += _only_native_memory()
        return [*code, (_IF_AT_LEAST, 0, 1, _YOUNG), _ABSENT, _REFUSED]
    for number in _refused(calls):
        code += _when(number, [_REFUSED])
    return [*code, _ALLOWED]


def _restricted(process_id: int, *, starts_programs: bool) -> list[_Line]:
    """The tests of calls that depend on their arguments under any filter."""
    # ENOSYS makes glibc fall back on clone, whose flags a filter can read.
    code = _when(system_calls.CLONE3, [_ABSENT])
    kind = (
        (_IF_ANY_BIT, 1, 0, _NEW_NAMESPACES)
        if starts_programs
        else (_IF_ANY_BIT, 0, 1, _CLONE_THREAD)
    )
    code += _when(system_calls.CLONE, [_argument(0), kind, _ALLOWED, _REFUSED])
    code += _when(
        system_calls.IOCTL,
        [
            _argument(1),
            (_AND, 0, 0, _IOCTL_KIND),
            (_IF_EQUAL, 0, 1, _OF_INTERFACES),
            _REFUSED,
            *_unless_argument_in(1, _TERMINAL_INPUT),
        ],
    )
    code += _when(system_calls.FCNTL, _unless_argument_in(1, _OF_OTHERS_BY_DESCRIPTOR))
    for number in system_calls.OWN_PROCESS_ONLY.values():
        code += _when(number, _if_argument_in(0, (process_id,)))
    for number in system_calls.OWN_OR_ZERO.values():
        code += _when(number, _if_argument_in(0, (0, process_id)))
    for number, flags in ((system_calls.OPEN, 1), (system_calls.OPENAT, 2)):
        unnamed = [_argument(flags), (_IF_ANY_BIT, 0, 1, _O_UNNAMED), _REFUSED, _ALLOWED]
        code += _when(number, unnamed)
    return code


def _only_native_memory() -> list[_Line]:
    """The tests that a GPU's driver might not live with."""
    return [
        *_when(
            system_calls.MMAP,
            [
                _argument(3),
                (_IF_ANY_BIT, 3, 0, _MAP_GROWS_DOWN),
                (_IF_ANY_BIT, 0, 1, _MAP_ANONYMOUS),
                (_IF_ANY_BIT, 1, 0, _MAP_SHARED),
                _ALLOWED,
                _REFUSED,
            ],
        ),
        *_when(system_calls.PRCTL, _if_argument_in(0, _PRCTL_OPTIONS)),
    ]


def _when(number: int, body: list[_Line]) -> list[_Line]:
    """Return `body`, which must end in returns, done for system call `number` only."""
    return [(_IF_EQUAL, 0, len(body), number), *body]


def _argument(index: int) -> _Line:
    return (_LOAD, 0, 0, _OFFSET_ARGUMENTS + _ARGUMENT_BYTES * index)


def _if_argument_in(index: int, values: tuple[int, ...]) -> list[_Line]:
    lines = [_argument(index)]
    for value in values:
        lines += [(_IF_EQUAL, 0, 1, value), _ALLOWED]
    return [*lines, _REFUSED]


def _unless_argument_in(index: int, values: tuple[int, ...]) -> list[_Line]:
    lines = [_argument(index)]
    for value in values:
        lines += [(_IF_EQUAL, 0, 1, value), _REFUSED]
    return [*lines, _ALLOWED]
