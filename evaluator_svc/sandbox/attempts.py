"""Attempts at everything that a locked process must not do; each does it where it can.

Every attempt returns when it was possible, having undone what it did, and raises the system's error
when it was refused. So the same code shows whether a lock is in force. Runs in a
process that is locked as those for candidates are, and never meets one. See `confinement.py`.
"""

import errno
import fcntl
import mmap
import os
import resource
import socket
import stat
import struct
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from evaluator_svc.sandbox.attempt import AttemptRequest, AttemptResult, AttemptTargets
from evaluator_svc.sandbox.system_call_attempts import SYSTEM_CALL_ATTEMPTS

_T = TypeVar("_T")

_CONNECT_SECONDS: Final = 2.0
_FEW_DESCRIPTORS: Final = 64
_NAME_OF_INTERFACE: Final = 0x8910
_FIRST_INTERFACE: Final = struct.pack("16si20x", b"", 1)
_BEYOND_BYTES: Final = 1 << 30
_EXECUTABLE: Final = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
_VFORK_AND_EXIT: Final = bytes.fromhex("b83a0000000f0585c07509b83c00000031ff0f05c3")
"""mov eax, vfork; syscall; test eax, eax; jnz out; mov eax, exit; xor edi, edi; syscall; out: ret.
The child must leave the stack as it is, which nothing in Python does."""


def attempt(request: AttemptRequest) -> AttemptResult:
    """Try one thing."""
    try:
        ATTEMPTS[request.name](request.targets)
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, type(error).__name__)
        return AttemptResult(succeeded=False, error=name)
    return AttemptResult(succeeded=True, error="")


def _socket(family: socket.AddressFamily, kind: socket.SocketKind) -> None:
    socket.socket(family, kind).close()


def _connect(targets: AttemptTargets) -> None:
    socket.create_connection(("127.0.0.1", targets.port), _CONNECT_SECONDS).close()


def _connect_unix(targets: AttemptTargets) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect("\0" + targets.abstract_name)


def _interfaces() -> None:
    """Ask a socket that is there already, such as the one to the supervisor."""
    given = [fd for fd in range(_FEW_DESCRIPTORS) if _is_socket(fd)]
    if given:
        fcntl.ioctl(given[0], _NAME_OF_INTERFACE, _FIRST_INTERFACE)
        return
    with socket.socket() as made:
        fcntl.ioctl(made.fileno(), _NAME_OF_INTERFACE, _FIRST_INTERFACE)


def _is_socket(descriptor: int) -> bool:
    try:
        return stat.S_ISSOCK(os.fstat(descriptor).st_mode)
    except OSError:
        return False


def _signal_by_descriptor(process: int) -> None:
    """Let what comes in by a pipe be a signal to another; nothing comes, and none is sent."""
    reading, writing = os.pipe()
    try:
        fcntl.fcntl(reading, fcntl.F_SETOWN, process)
    finally:
        os.close(reading)
        os.close(writing)


def _any(targets: Iterable[_T], step: Callable[[_T], object]) -> None:
    """When `step` works for one target; raises as for the last of them."""
    error = OSError(errno.ENOENT, "nothing to try")
    for target in targets:
        try:
            step(target)
        except OSError as refusal:
            error = refusal
        else:
            return
    raise error


def _others(targets: AttemptTargets) -> list[int]:
    """The processes to reach for; ids of the host may mean oneself in a namespace."""
    return [p for p in (*targets.processes, os.getppid()) if p not in (0, os.getpid())]


def _of_others(targets: AttemptTargets, step: Callable[[int], object]) -> None:
    _any(_others(targets), step)


def _read(path: str, token: str) -> None:
    if token.encode() not in Path(path).read_bytes():
        raise OSError(errno.ENOENT, "not the planted file")


def _own_environment(targets: AttemptTargets) -> None:
    if targets.token not in os.environ.values():
        _read("/proc/self/environ", targets.token)


def _read_secrets(targets: AttemptTargets) -> None:
    _any(targets.secrets, lambda path: _read(path, targets.token))


def _write_outside(targets: AttemptTargets) -> None:
    name = Path(targets.outside).name
    _any((targets.outside, f"/{name}", f"/dev/{name}", f"/var/tmp/{name}"), _write)


def _write(path: str) -> None:
    Path(path).write_text("x", encoding="ascii")
    Path(path).unlink()


def _change_mode(path: str) -> None:
    mode = Path(path).stat().st_mode
    Path(path).chmod(mode & 0o7777)


def _fork() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def _vfork() -> None:
    import ctypes

    with mmap.mmap(-1, mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, _EXECUTABLE) as code:
        code.write(_VFORK_AND_EXIT)
        start = ctypes.c_char.from_buffer(code)
        child = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(start))()
        del start
    if child < 0:
        raise OSError(-child, "vfork")
    os.waitpid(child, 0)


def _spawn() -> None:
    child = os.posix_spawn(sys.executable, [sys.executable, "-c", ""], {})
    os.waitpid(child, 0)


def _execute() -> None:
    os.execv(sys.executable, [sys.executable, "-c", ""])


def _memory(targets: AttemptTargets) -> None:
    size = targets.memory_bytes + _BEYOND_BYTES
    mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()


def _file_size(targets: AttemptTargets) -> None:
    with Path(targets.scratch, "large").open("wb") as file:
        os.ftruncate(file.fileno(), targets.file_bytes + 1)


def _open_files(targets: AttemptTargets) -> None:
    opened: list[int] = []
    try:
        while len(opened) <= targets.open_files:
            opened.append(os.open("/dev/null", os.O_RDONLY))
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _more_time() -> None:
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except ValueError as error:  # Python's word for EPERM
        raise OSError(errno.EPERM, str(error)) from error


def _in_kernel(step: Callable[[str, list[int]], None], targets: AttemptTargets) -> None:
    step(targets.scratch, _others(targets))


ATTEMPTS: Final[dict[str, Callable[[AttemptTargets], None]]] = {
    "socket_inet": lambda _: _socket(socket.AF_INET, socket.SOCK_STREAM),
    "socket_datagram": lambda _: _socket(socket.AF_INET6, socket.SOCK_DGRAM),
    "socket_unix": lambda _: _socket(socket.AF_UNIX, socket.SOCK_STREAM),
    "socket_netlink": lambda _: _socket(socket.AF_NETLINK, socket.SOCK_RAW),
    "connect": _connect,
    "connect_unix": _connect_unix,
    "interfaces": lambda _: _interfaces(),
    "read_secret": _read_secrets,
    "own_environment": _own_environment,
    "environment_of_other": lambda t: _of_others(t, lambda p: _read(f"/proc/{p}/environ", t.token)),
    "memory_of_other": lambda t: _of_others(t, lambda p: Path(f"/proc/{p}/mem").open("rb").close()),
    "descriptors_of_other": lambda t: _of_others(
        t, lambda p: list(Path(f"/proc/{p}/fd").iterdir())
    ),
    "command_line_of_other": lambda t: _of_others(
        t, lambda p: Path(f"/proc/{p}/cmdline").read_bytes()
    ),
    "signal": lambda t: _of_others(t, lambda p: os.kill(p, 0)),
    "signal_by_descriptor": lambda t: _of_others(t, _signal_by_descriptor),
    "pace_of_other": lambda t: _of_others(
        t, lambda p: os.sched_setaffinity(p, os.sched_getaffinity(p))
    ),
    "write_outside": _write_outside,
    "write_shared_memory": lambda t: _write(f"/dev/shm/{Path(t.outside).name}"),
    "write_home": lambda t: _write(str(Path(t.secrets[-1]).with_suffix(".attempt"))),
    "change_mode": lambda t: _any(t.secrets, _change_mode),
    "kernel_log": lambda _: Path("/dev/kmsg").open("rb").close(),
    "fork": lambda _: _fork(),
    "vfork": lambda _: _vfork(),
    "spawn": lambda _: _spawn(),
    **{name: partial(_in_kernel, step) for name, step in SYSTEM_CALL_ATTEMPTS.items()},
    "memory": _memory,
    "file_size": _file_size,
    "open_files": _open_files,
    "cpu_time": lambda _: _more_time(),
    # Last: where it works, the process is another program.
    "execve": lambda _: _execute(),
}
"""By name, in the order in which they are to be tried."""
