"""The lists of system calls are what they say, and a filter of either does what they say."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator_svc.sandbox import system_calls
from evaluator_svc.sandbox.host_paths import package_root
from evaluator_svc.sandbox.system_calls import CallFilter

_HEADER = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")

_NAMED = {
    **system_calls.ALLOWED,
    **system_calls.REFUSED,
    **system_calls.OWN_PROCESS_ONLY,
    **system_calls.OWN_OR_ZERO,
    "clone": system_calls.CLONE,
    "clone3": system_calls.CLONE3,
    "mmap": system_calls.MMAP,
    "open": system_calls.OPEN,
    "openat": system_calls.OPENAT,
    "ioctl": system_calls.IOCTL,
    "fcntl": system_calls.FCNTL,
    "prctl": system_calls.PRCTL,
}

_FILTERED = """
import ctypes, fcntl, mmap, os, socket, sys, threading
from evaluator_svc.sandbox import limits, seccomp
from evaluator_svc.sandbox.system_calls import CallFilter

limits.forbid_new_privileges()
given = socket.socketpair()
seccomp.restrict(CallFilter(sys.argv[1]), process_id=os.getpid())

def attempt(name, action):
    try:
        action()
    except OSError as error:
        print(name, error.strerror)
    else:
        print(name, "done")

def thread():
    worker = threading.Thread(target=lambda: None)
    worker.start()
    worker.join()

def stack():
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    at = libc.mmap(None, 1 << 20, mmap.PROT_WRITE, private | 0x100, -1, ctypes.c_long(0))
    if at == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

shared = mmap.MAP_SHARED | mmap.MAP_ANONYMOUS
attempt("thread", thread)
attempt("talk", lambda: given[0].send(b"x"))
attempt("signal_oneself", lambda: os.kill(os.getpid(), 0))
attempt("own_pace", lambda: os.sched_setaffinity(0, os.sched_getaffinity(0)))
attempt("private_memory", lambda: mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
attempt("shared_memory", lambda: mmap.mmap(-1, 4096, shared))
attempt("stack_memory", stack)
attempt("read_flags", lambda: fcntl.fcntl(0, fcntl.F_GETFL))
attempt("signal_others", lambda: fcntl.fcntl(0, fcntl.F_SETOWN, os.getppid()))
attempt("choose_signal", lambda: fcntl.fcntl(0, 10, 9))
attempt("memory_file", lambda: os.memfd_create("x"))
attempt("unnamed_file", lambda: os.open("/tmp", os.O_TMPFILE | os.O_RDWR))
attempt("socket_pair", lambda: socket.socketpair())
attempt("change_folder", lambda: os.chdir("/"))
"""


def test_no_call_is_on_two_lists() -> None:
    """Every name has one number, and every number one meaning."""
    assert len(_NAMED) == len(set(_NAMED.values()))
    lists = (system_calls.ALLOWED, system_calls.REFUSED)
    assert sum(len(calls) for calls in lists) + 12 == len(_NAMED)


def test_numbers_are_the_kernels() -> None:
    """A wrong number would allow or refuse another call."""
    if not _HEADER.exists():
        pytest.skip(f"{_HEADER} is not installed")
    known = dict(re.findall(r"#define __NR_(\w+) (\d+)", _HEADER.read_text(encoding="ascii")))
    # A header may be older than the kernel's newest calls.
    wrong = {n: v for n, v in _NAMED.items() if n in known and int(known[n]) != v}
    assert wrong == {}
    assert len(known.keys() & _NAMED.keys()) > 200


def _tried(policy: CallFilter) -> dict[str, str]:
    ended = subprocess.run(
        [sys.executable, "-P", "-s", "-c", _FILTERED, policy.value],
        env={"PYTHONPATH": package_root()},
        capture_output=True,
        text=True,
        check=True,
        timeout=280,
    )
    return dict(line.split(" ", 1) for line in ended.stdout.splitlines())


@pytest.mark.parametrize("policy", list(CallFilter))
def test_what_a_runtime_needs_stays(policy: CallFilter) -> None:
    tried = _tried(policy)
    needed = ("thread", "talk", "signal_oneself", "own_pace", "private_memory", "read_flags")
    assert {tried[name] for name in needed} == {"done"}
    refused = ("unnamed_file", "socket_pair", "signal_others", "choose_signal")
    assert {tried[name] for name in refused} == {"Operation not permitted"}


def test_what_is_not_listed_is_refused_where_the_list_is_of_what_is_allowed() -> None:
    """Memory that no limit counts among it; a GPU's driver keeps these."""
    names = ("shared_memory", "stack_memory", "memory_file", "change_folder")
    strict = _tried(CallFilter.ALLOW_LISTED)
    assert {strict[name] for name in names} == {"Operation not permitted"}
    lenient = _tried(CallFilter.REFUSE_LISTED)
    assert {lenient[name] for name in names} == {"done"}
