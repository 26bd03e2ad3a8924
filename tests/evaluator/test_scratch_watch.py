"""A process that fills its scratch folder on the host is ended, and it is said why."""

import os
import tempfile
import time
from pathlib import Path

import pytest

from evaluator_svc.process import ChildProcess, ProcessCommand, ProcessLauncher
from evaluator_svc.sandbox.host_paths import package_root
from evaluator_svc.scratch_watch import ScratchWatch

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


@pytest.fixture
def fill(tmp_path: Path):
    """Start a process that writes files to its scratch folder and then waits."""
    (tmp_path / "filler.py").write_text(_FILLER)
    launcher = ProcessLauncher()
    watch = ScratchWatch(1 << 20, look_seconds=0.02)
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
        watch.add(process)
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
    end = process.wait(20.0)
    assert end is not None
    assert "more than 1 MiB to its scratch folder" in end.describe()


def test_what_nobody_can_look_into_ends_the_process(fill):
    """A path that is longer than the system takes could hide anything."""
    end = fill(0, 0, levels=20).wait(20.0)
    assert end is not None
    assert "scratch folder" in end.describe()


def test_a_little_is_left_alone(fill):
    """What a driver may write is no reason."""
    process = fill(2, 1 << 16)
    deadline = time.monotonic() + 20.0
    while "done" not in process.last_words() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert process.wait(0.2) is None
    end = process.kill()
    assert "scratch" not in end.describe()
