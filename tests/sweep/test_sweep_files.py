"""Landscapes of a run's sweeps: kept as files by the command and the SDK, or missed aloud."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kernel_foundry.cli.main import cli
from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.task import Task
from kernel_foundry.domain.traffic_bound import NEVER
from kernel_foundry.paths import sweeps_dir
from kernel_foundry.ports import Evaluator, Generator
from kernel_foundry.sdk import client, sweep_files
from kernel_foundry.sdk.loop.budget import Budget
from kernel_foundry.sdk.loop.progress import Event, RunResult, SweepEvent, UnsavedSweepEvent
from kernel_foundry.sdk.report.t4 import t4_results
from kernel_foundry.sdk.services import Directory, Targets
from tests.cli.conftest import TASK
from tests.sweep.test_evolution_sweeps import SPEC, SpyEvaluator, TunedGenerator


class AnyDevice(SpyEvaluator):
    """Takes every device for its own."""

    async def admit(self, task: Task, device: str = "") -> Admission:
        return await super().admit(task, "")


class FakeServices(Directory):
    """A real archive, a fake evaluator and a generator of tuned candidates."""

    async def evaluator(self) -> Evaluator:
        return AnyDevice()

    async def generator(self) -> Generator:
        return TunedGenerator()


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the data folder, in a home of the test's own."""
    monkeypatch.delenv("KERNEL_FOUNDRY_DATA_DIR", raising=False)
    monkeypatch.delenv("KERNEL_FOUNDRY_STORE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(client, "Directory", FakeServices)
    (tmp_path / "relu.py").write_text(TASK)
    return tmp_path / "kernel-foundry"


def optimize(listener: Callable[[Event], None]) -> RunResult:
    budget = Budget(evaluations=60, stop_at=NEVER)
    with client.connect(Targets()) as foundry:
        return foundry.optimize(SPEC.task, run="run", budget=budget, listener=listener)


def resume(listener: Callable[[Event], None]) -> RunResult:
    budget = Budget(evaluations=150, stop_at=NEVER)
    with client.connect(Targets()) as foundry:
        return foundry.resume("run", budget=budget, listener=listener)


def kfoundry(data: Path, *arguments: str) -> Result:
    """Run the command in this process, where the services are fakes."""
    arguments = tuple(a.replace("TASK", str(data.parent / "relu.py")) for a in arguments)
    return CliRunner().invoke(cli, arguments, standalone_mode=False)


def test_each_sweep_of_a_run_is_kept_whole_and_so_is_a_resumed_runs(data: Path) -> None:
    events: list[Event] = []
    optimize(events.append)
    first = [e for e in events if isinstance(e, SweepEvent)]
    resume(events.append)
    swept = {e.candidate.digest[:12]: e for e in events if isinstance(e, SweepEvent)}

    files = sweep_files.sweep_paths("run")
    assert 0 < len(first) < len(swept)
    assert {path.stem for path in files} == set(swept)
    for path in files:
        assert path.parent == data / "sweeps" / "run"
        assert json.loads(path.read_text()) == t4_results(swept[path.stem].results)
        assert len(swept[path.stem].results) > 1
    assert not any(isinstance(e, UnsavedSweepEvent) for e in events)


def test_the_command_says_where_they_lie(data: Path) -> None:
    done = kfoundry(data, "optimize", "TASK", "--run", "run", "--evaluations", "60")
    assert not done.exception, done.output
    files = sweep_files.sweep_paths("run")
    assert files
    line = f"landscapes of sweeps (T4 files: {len(files)}): {data / 'sweeps' / 'run'}"
    assert line in done.stdout
    for step in ("runs best run", "export run", "optimize --resume --run run --evaluations "):
        assert step in done.stdout
    assert line in kfoundry(data, "runs", "show").stdout
    shown = json.loads(kfoundry(data, "runs", "show", "--json").stdout)
    assert shown["sweeps"] == [str(path) for path in files]


def test_a_full_disk_costs_a_warning_and_leaves_nothing_half_written(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = Path.replace

    def fail_where_sweeps_are(self: Path, target: Path) -> Path:
        if "sweeps" not in self.parts:
            return replace(self, target)
        assert self.stat().st_size  # written beside the file that it is to be
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(Path, "replace", fail_where_sweeps_are)
    done = kfoundry(data, "optimize", "TASK", "--run", "run", "--evaluations", "60")
    assert not done.exception, done.output
    assert done.return_value == 0
    assert "warning: the landscape of " in done.stderr
    assert "No space left on device" in done.stderr
    assert "swept " in done.stderr
    assert "landscapes of sweeps" not in done.stdout
    assert list((data / "sweeps" / "run").iterdir()) == []


def test_the_sdk_hears_of_a_folder_that_cannot_be_made(data: Path) -> None:
    data.mkdir()
    (data / "sweeps").write_text("a file")
    events: list[Event] = []
    ended = optimize(events.append)

    assert ended.winner is not None
    missed = [e.candidate for e in events if isinstance(e, UnsavedSweepEvent)]
    assert missed == [e.candidate for e in events if isinstance(e, SweepEvent)] != []


@pytest.mark.parametrize("run", ["..", ".", "softmax-20260101-120000"])
def test_every_run_has_a_folder_of_its_own(data: Path, run: str) -> None:
    assert sweeps_dir(run).resolve().parent == data / "sweeps"
    assert sweeps_dir("softmax-1").name == "softmax-1"
