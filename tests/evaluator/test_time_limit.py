"""A process's limit counts its own time, not what it waited for a core."""

import contextlib
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evaluator_svc.processes.time_limit import OwnTimer, answers_in_time

_WORK = """
import os, sys, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
print("up", flush=True)
sys.stdin.readline()
while time.thread_time() < %s:
    pass
print("done", flush=True)
"""
_FOR_EVER = "1e9"


@contextlib.contextmanager
def _at_work(cpu_seconds: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Start a process that takes that much of one core, the same for all, once it is told to."""
    with subprocess.Popen(
        [sys.executable, "-S", "-c", _WORK % cpu_seconds],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdin is not None
            process.stdout.readline()
            process.stdin.write(b"\n")
            yield process
        finally:
            process.kill()


def _answers(process: "subprocess.Popen[bytes]") -> Callable[[float], bool]:
    return lambda seconds: bool(select.select([process.stdout], [], [], seconds)[0])


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="no /proc/PID/schedstat")
def test_who_waits_for_a_core_has_time_enough() -> None:
    """With a quarter of a core, 0.2 s of work take 0.8 s."""
    with contextlib.ExitStack() as others:
        for _ in range(3):
            others.enter_context(_at_work(_FOR_EVER))
        with _at_work("0.2") as process:
            timer = OwnTimer(process.pid)
            assert answers_in_time(_answers(process), process.pid, 0.5)
            assert timer.seconds() < 0.5


def test_who_has_a_core_or_sleeps_has_the_limit_only() -> None:
    with _at_work(_FOR_EVER) as busy, subprocess.Popen(["sleep", "60"], stdout=-1) as asleep:
        assert not answers_in_time(_answers(busy), busy.pid, 0.3)
        assert not answers_in_time(_answers(asleep), asleep.pid, 0.3)
        asleep.kill()
