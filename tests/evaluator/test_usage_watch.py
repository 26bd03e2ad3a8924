"""A process that fills its scratch folder on the host, or memory, is ended, and it is said why."""

import os
import sys
import tempfile
import time
from pathlib import Path

import pytest

from evaluator_svc.processes.process import ChildProcess, ProcessCommand, ProcessLauncher
from evaluator_svc.processes.usage_watch import UsageWatch
from evaluator_svc.sandbox.bubblewrap import Mounts, probe
from evaluator_svc.sandbox.host_paths import package_root, readable_paths

_FILLER = """
import os, sys, time
from pathlib import Path
folder = Path(os.environ["TMPDIR"], "below")
folder.mkdir()
at = os.open(folder, os.O_RDONLY)
for _ in range(int(os.environ["LEVELS"])):
    os.mkdir("d" * 250, dir_fd=at)
    at = os.open("d" * 250, os.O_RDONLY, dir_fd=at)
for number in range(int(os.environ["COUNT"])):
    (folder / str(number)).write_bytes(bytes(int(os.environ["SIZE"])))
print("done", file=sys.stderr, flush=True)
time.sleep(30)
"""


_HOARDER = """
import ctypes, mmap, time
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
size = 64 << 20
for _ in range(4):
    at = libc.mmap(None, size, mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    ctypes.memset(at, 1, size)
    libc.mprotect(ctypes.c_void_p(at), ctypes.c_size_t(size), mmap.PROT_READ)
time.sleep(30)
"""


@pytest.fixture
def fill(tmp_path: Path):
    """Start a process that writes files to its scratch folder and then waits."""
    (tmp_path / "filler.py").write_text(_FILLER)
    launcher = ProcessLauncher()
    watch = UsageWatch(look_seconds=0.02)
    started: list[ChildProcess] = []

    def start(count: int, size: int, levels: int = 0) -> ChildProcess:
        scratch = tempfile.TemporaryDirectory()
        environment = {
            "PYTHONPATH": f"{tmp_path}:{package_root()}", "PATH": os.environ["PATH"],
            "TMPDIR": scratch.name, "COUNT": str(count), "SIZE": str(size), "LEVELS": str(levels),
        }  # fmt: skip
        process = launcher.start(
            ProcessCommand(
                module="filler",
                environment=tuple(environment.items()),
                wrapping=None,
                accepts_descriptors=False,
            )
        )
        process.scratch = scratch
        watch.add(process, memory_bytes=1 << 30, scratch_bytes=1 << 20)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
    watch.close()
    launcher.close()


@pytest.mark.parametrize(("count", "size"), [(8, 1 << 18), (5000, 0)])
def test_too_much_ends_the_process(fill, count, size):
    """Too many bytes, or too many files without any."""
    process = fill(count, size)
    end = process.wait(60.0)
    assert end is not None
    assert "more than 1 MiB to its scratch folder" in end.describe()


def test_what_nobody_can_look_into_ends_the_process(fill):
    """A path that is longer than the system takes could hide anything."""
    end = fill(0, 0, levels=20).wait(60.0)
    assert end is not None
    assert "scratch folder" in end.describe()


def test_a_little_is_left_alone(fill):
    """What a driver may write is no reason."""
    process = fill(2, 1 << 16)
    deadline = time.monotonic() + 60.0
    while "done" not in process.last_words() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert process.wait(0.2) is None
    end = process.kill()
    assert "scratch" not in end.describe()


@pytest.mark.parametrize("is_wrapped", [False, True], ids=["bare", "bubblewrap"])
def test_memory_that_no_limit_counts_ends_the_process(tmp_path, is_wrapped):
    """Written, then made read-only, again and again: RLIMIT_DATA forgets it."""
    (tmp_path / "hoarder.py").write_text(_HOARDER)
    environment = (("PYTHONPATH", str(tmp_path)),)
    readable = (*readable_paths(), str(tmp_path))
    wrapping = Mounts(readable=readable, devices=(), environment=environment)
    if is_wrapped and (reason := probe(wrapping, sys.executable)):
        pytest.skip(f"bubblewrap: {reason}")
    launcher, watch = ProcessLauncher(), UsageWatch(look_seconds=0.02)
    command = ProcessCommand(
        module="hoarder",
        environment=environment,
        wrapping=wrapping if is_wrapped else None,
        accepts_descriptors=False,
    )
    process = launcher.start(command)
    try:
        watch.add(process, memory_bytes=128 << 20, scratch_bytes=1 << 20)
        end = process.wait(60.0)
        assert end is not None
        assert "more than 128 MiB of memory" in end.describe()
    finally:
        process.kill()
        watch.close()
        launcher.close()
