"""Spawned services end with their loop however it dies, and are started again when they do."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import TASK, environment_of, run_kfoundry

SPAWNED = ("--evaluator", "spawn", "--archive", "spawn", "--generator", "spawn")


def _children(process_id: int) -> set[int]:
    """Return the ids of a process's descendants."""
    found = set()
    for task in Path(f"/proc/{process_id}/task").glob("*/children"):
        for child in task.read_text().split():
            found |= {int(child)} | _children(int(child))
    return found


def _is_alive(process_id: int) -> bool:
    try:
        status = Path(f"/proc/{process_id}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def _module(process_id: int) -> str:
    words = Path(f"/proc/{process_id}/cmdline").read_text().split("\0")
    return next((word for word in words if word.endswith("_svc")), "")


class _Loop:
    def __init__(self, folder: Path, *services: str, evaluations: int) -> None:
        self.folder = folder
        (folder / "relu.py").write_text(TASK)
        (folder / "tmp").mkdir()
        self.environment = {**environment_of(folder), "TMPDIR": str(folder / "tmp")}
        command = (
            *(sys.executable, "-m", "kernel_foundry.cli", "optimize", "relu.py"),
            *("--run", "spawned", "--device", "null:0", "--model", "recipes"),
            *("--evaluations", str(evaluations), *services),
        )
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def read_until(self, pattern: str) -> str:
        """Return the first line of stderr that has the pattern; fail when there is none."""
        assert self.process.stderr is not None
        said = []
        for line in self.process.stderr:
            said.append(line)
            if re.search(pattern, line):
                return line
        pytest.fail("".join(said))

    def beside(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run another command with the loop's environment."""
        return run_kfoundry(self.folder, *arguments, environment=self.environment)

    def scratch(self) -> list[str]:
        return [path.name for path in (self.folder / "tmp").iterdir()]

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path: the name of a UNIX socket is limited to about a hundred characters."""
    with tempfile.TemporaryDirectory(prefix="kf-") as name:
        yield Path(name)


@pytest.fixture
def loops() -> Iterator[list[_Loop]]:
    """Loops that a test started; they are ended."""
    made: list[_Loop] = []
    yield made
    for loop in made:
        loop.close()


@pytest.mark.slow
@pytest.mark.parametrize("services", [SPAWNED, ()], ids=["spawned", "local"])
def test_everything_ends_with_a_loop_that_is_killed(
    folder: Path, loops: list[_Loop], services: tuple[str, ...]
) -> None:
    loop = _Loop(folder, *services, evaluations=100_000)
    loops.append(loop)
    loop.read_until(r"^\[3\]")
    descendants = _children(loop.process.pid)
    assert len(descendants) >= len(services) // 2 + 2  # judge, builders, runners
    second = loop.beside("optimize", "--resume", "--run", "spawned")
    assert second.returncode == 2
    assert f"being worked on by process {loop.process.pid}" in second.stderr
    loop.process.kill()
    while any(map(_is_alive, descendants)):
        time.sleep(0.1)
    assert '"state": "interrupted"' in loop.beside("runs", "list", "--json").stdout
    assert loop.scratch() == []


@pytest.mark.slow
def test_services_that_die_are_started_again_and_sigterm_ends_the_loop_in_order(
    folder: Path, loops: list[_Loop]
) -> None:
    """What was in flight is asked again, and the run goes on.

    A resumed run keeps its budget and goes on to its end; one that has used it up asks for a new
    total.
    """
    services = ("evaluator", "archive", "generator")
    loop = _Loop(folder, *SPAWNED, evaluations=12)
    loops.append(loop)
    loop.read_until(r"^\[1\]")
    processes = {_module(p): p for p in _children(loop.process.pid)}
    for service in services:
        os.kill(processes[f"{service}_svc"], signal.SIGKILL)
    said = [loop.read_until("is started again") for _ in services]
    assert {f"the {s} service was ended by SIGKILL" for s in services} == {
        line.partition(";")[0] for line in said
    }
    loop.read_until(r"^\[6\]")
    descendants = _children(loop.process.pid)
    assert set(services) <= {_module(p).removesuffix("_svc") for p in descendants}
    loop.process.terminate()
    assert "optimize --resume --run spawned` continues it" in loop.read_until("is stored")
    assert loop.process.wait() == 130
    while any(map(_is_alive, descendants)):  # a process that was killed needs a core to end
        time.sleep(0.1)
    assert loop.scratch() == []
    shown = loop.beside("runs", "list", "--json")
    assert '"state": "interrupted"' in shown.stdout
    resumed = loop.beside("optimize", "--resume", "--run", "spawned", *SPAWNED)
    assert "[12]" in resumed.stderr
    assert resumed.returncode in (0, 1)  # 1: nothing correct, as is usual on this device
    again = loop.beside("optimize", "--resume", "--run", "spawned")
    assert again.returncode == 2
    assert "give a new total" in again.stderr
