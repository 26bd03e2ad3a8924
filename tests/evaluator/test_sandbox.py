"""What a locked process can no longer do, with bubblewrap around it and without."""

import json
import shutil
import subprocess
import sys

import pytest

from evaluator_svc.sandbox import bubblewrap, landlock
from evaluator_svc.sandbox.confinement import Confinement
from evaluator_svc.sandbox.host_paths import device_nodes, package_root, readable_paths
from evaluator_svc.sandbox.system_calls import CallFilter
from kernel_foundry.domain.device import IsolationReport
from kernel_foundry.domain.plain import to_plain

_PROBE = """
import ctypes, json, os, resource, signal, socket, sys, threading
from evaluator_svc.sandbox.confinement import Confinement, confine
from kernel_foundry.domain.plain import from_plain
given = json.loads(sys.argv[1])
confinement = from_plain(Confinement, given["confinement"])
report = confine(confinement, outer=tuple(given["outer"]))

def attempt(action):
    try:
        action()
    except (OSError, MemoryError) as error:
        return type(error).__name__
    return "done"

def thread():
    worker = threading.Thread(target=lambda: None)
    worker.start()
    worker.join()

def write(path):
    with open(path, "w") as file:
        file.write("x")

print(json.dumps({
    "mechanisms": report.mechanisms,
    "missing": report.missing,
    "fork": attempt(os.fork),
    "exec": attempt(lambda: os.execv("/usr/bin/true", ["true"])),
    "system": ctypes.CDLL(None).system(b"true"),
    "socket": attempt(lambda: socket.socket()),
    "passwd": attempt(lambda: open("/etc/passwd").read()),
    "secret": attempt(lambda: open(given["secret"]).read()),
    "write_outside": attempt(lambda: write(given["outside"])),
    "write_scratch": attempt(lambda: write(confinement.scratch + "/file")),
    "folder_in_scratch": attempt(lambda: os.mkdir(confinement.scratch + "/folder")),
    "kill_other": attempt(lambda: os.kill(given["other"], 0)),
    "thread": attempt(thread),
    "memory": attempt(lambda: bytearray(given["confinement"]["memory_bytes"])),
}))
"""

_SHARED_ZEROS = """
import mmap, os
try:
    mmap.mmap(os.open("/dev/zero", os.O_RDWR), 4096, mmap.MAP_SHARED)
    print("done")
except OSError as error:
    print(type(error).__name__)
print(len(open("/dev/urandom", "rb").read(4)))
"""


_UNPRIVILEGED = ("setpriv", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all")


@pytest.fixture(params=["bubblewrap", "landlock", "landlock without privileges"])
def locked(request, tmp_path):
    """What a locked process answers about what it can do; as in a container without privileges."""
    wrapped = request.param == "bubblewrap"
    is_unprivileged = request.param == "landlock without privileges"
    if is_unprivileged and shutil.which(_UNPRIVILEGED[0]) is None:
        pytest.skip("no setpriv on PATH")
    readable = readable_paths()
    if wrapped:
        wrapping = bubblewrap.Mounts(
            readable=readable, devices=(), environment=(("PYTHONPATH", package_root()),)
        )
        reason = bubblewrap.probe(wrapping, sys.executable)
        if reason:
            pytest.skip(f"bubblewrap: {reason}")
    secret = tmp_path / "secret"
    secret.write_text("key")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    confinement = Confinement(
        readable=readable,
        devices=device_nodes("null"),
        scratch=bubblewrap.SCRATCH if wrapped else str(scratch),
        memory_bytes=1 << 30,
        cpu_seconds=60,
        file_bytes=1 << 20,
        open_files=256,
        makes_folders=False,
        scratch_bytes=1 << 22,
        calls=CallFilter.ALLOW_LISTED,
    )
    sleeper = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    given = {
        "confinement": to_plain(confinement),
        "outer": ["bubblewrap"] if wrapped else [],
        "secret": str(secret),
        "outside": str(tmp_path / "outside"),
        "other": sleeper.pid,
    }
    line = (sys.executable, "-P", "-s", "-c", _PROBE, json.dumps(given))
    if wrapped:
        line = bubblewrap.command(wrapping, line)
    if is_unprivileged:
        line = (shutil.which(_UNPRIVILEGED[0]), *_UNPRIVILEGED[1:], *line)
    ended = subprocess.run(
        line,
        env={"PYTHONPATH": package_root()},
        capture_output=True,
        text=True,
        check=True,
        timeout=280,
    )
    sleeper.communicate(b"\n")
    return json.loads(ended.stdout)


def test_a_locked_process_can_only_compute(locked):
    """No processes, network, foreign files, foreign signals, or memory beyond the limit."""
    report = IsolationReport(
        mechanisms=tuple(locked["mechanisms"]), missing=tuple(locked["missing"])
    )
    assert report.is_sufficient, report
    assert locked["system"] != 0
    refused = (
        "fork", "exec", "socket", "passwd", "secret", "write_outside", "kill_other", "memory",
        "folder_in_scratch",
    )  # fmt: skip
    assert {name: locked[name] for name in refused if locked[name] == "done"} == {}


def test_a_locked_process_keeps_threads_and_scratch(locked):
    """What a device runtime needs still works."""
    assert (locked["thread"], locked["write_scratch"]) == ("done", "done")


def test_no_lock_is_not_sufficient():
    """Limits alone do not keep a candidate in."""
    assert not IsolationReport(mechanisms=("rlimits", "landlock")).is_sufficient
    assert not IsolationReport(mechanisms=("rlimits", "seccomp")).is_sufficient


def test_an_older_kernels_landlock_is_told_as_such():
    """Each thing that it cannot restrict, with the version that can."""
    assert landlock.shortcomings(6) == ()
    assert len(landlock.shortcomings(1)) == 4
    (reason,) = landlock.shortcomings(5)
    assert "signals" in reason
    assert "interface is 5" in reason


def test_bubblewrap_alone_leaves_no_memory_that_nothing_counts() -> None:
    """Where the kernel has no Landlock: `/dev/zero` mapped as shared is such memory."""
    wrapping = bubblewrap.Mounts(readable=readable_paths(), devices=(), environment=())
    reason = bubblewrap.probe(wrapping, sys.executable)
    if reason:
        pytest.skip(f"bubblewrap: {reason}")
    line = bubblewrap.command(wrapping, (sys.executable, "-c", _SHARED_ZEROS))
    ended = subprocess.run(line, capture_output=True, text=True, check=True, timeout=280)
    assert ended.stdout.split() == ["PermissionError", "4"]
