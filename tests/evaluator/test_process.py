"""Children are started, killed whole, and do not outlive a supervisor that is killed."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from evaluator_svc.hardware.device_lock import DeviceLock
from evaluator_svc.processes.process import ChildProcess, ProcessCommand, ProcessLauncher
from evaluator_svc.processes.spare_pool import SparePool
from evaluator_svc.sandbox.host_paths import package_root

_ENVIRONMENT = (("PYTHONPATH", package_root()), ("PATH", os.environ["PATH"]))

_SUPERVISOR = """
import asyncio, dataclasses, os
from evaluator_svc.evaluator import LocalEvaluator
from evaluator_svc.settings import EvaluatorSettings

async def main():
    settings = EvaluatorSettings.from_environment(os.environ)
    settings = dataclasses.replace(settings, device_kinds=("null",))
    evaluator = LocalEvaluator(settings)
    await evaluator.capabilities()
    print("up", flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.fixture
def launcher():
    launcher = ProcessLauncher()
    yield launcher
    launcher.close()


def _start(launcher: ProcessLauncher, module: str = "evaluator_svc.runner") -> ChildProcess:
    return launcher.start(
        ProcessCommand(
            module=module, environment=_ENVIRONMENT, wrapping=None, accepts_descriptors=False
        )
    )


def test_a_killed_child_is_gone_and_says_how(launcher):
    child = _start(launcher)
    assert child.is_running
    end = child.kill()
    assert (end.signal, end.exit_code) == (signal.SIGKILL, None)
    assert "SIGKILL" in end.describe()
    assert not child.is_running


def test_a_child_that_cannot_start_leaves_its_last_words(launcher):
    """What it wrote to stderr is kept."""
    child = _start(launcher, "evaluator_svc.no_such_module")
    end = child.wait(60.0)
    child.kill()
    assert end.exit_code == 1
    assert "no_such_module" in end.last_words


def test_spare_processes_are_used_once_and_replaced(launcher):
    """Every taken process is another one, and those that ended are not given out."""
    pool = SparePool(lambda: _start(launcher), device_lock=DeviceLock(), size=1)
    first, second = pool.take(), pool.take()
    assert first.process_id != second.process_id
    assert second.is_running
    for child in (first, second):
        child.kill()
    pool.close()


def test_spare_processes_do_not_start_while_times_are_taken(launcher):
    """The keeper waits for the lock; a caller who needs one gets it at once."""
    lock = DeviceLock()
    starters: list[str] = []

    def start() -> ChildProcess:
        starters.append(threading.current_thread().name)
        return _start(launcher)

    pool = SparePool(start, device_lock=lock, size=1)
    with lock.exclusive():
        pool.take().kill()
        assert starters == [threading.current_thread().name]
    pool.close()


def test_a_process_is_replaced_after_its_use_while_another_is_ready(launcher):
    """Whoever uses it will take times, and they would wait for the replacement."""
    has_started = threading.Semaphore(0)

    def start() -> ChildProcess:
        child = _start(launcher)
        has_started.release()
        return child

    pool = SparePool(start, device_lock=DeviceLock(), size=2)
    pool.refill()
    assert all(has_started.acquire(timeout=60.0) for _ in range(2))
    with pool.taken():
        assert not has_started.acquire(timeout=0.2)
    assert has_started.acquire(timeout=60.0)
    pool.close()


def test_nothing_outlives_a_supervisor_that_is_killed():
    """Judge, builders and runners end with it."""
    with subprocess.Popen(
        [sys.executable, "-c", _SUPERVISOR],
        env={**os.environ, "PYTHONPATH": package_root()},
        stdout=subprocess.PIPE,
    ) as supervisor:
        said = supervisor.stdout.readline()
        children = _descendants(supervisor.pid)
        supervisor.kill()
    assert said == b"up\n"
    assert children
    deadline = time.monotonic() + 60.0
    while any(_is_alive(pid) for pid in children) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert [pid for pid in children if _is_alive(pid)] == []


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += [int(child), *_descendants(int(child))]
    return found


def _is_alive(pid: int) -> bool:
    try:
        return " Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2][:3]
    except FileNotFoundError:
        return False
