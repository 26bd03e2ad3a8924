"""`kfoundry export` as a command, with fake runs and trials: what it writes, and its exit codes."""

import contextlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernel_foundry.cli import export as cli
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.evidence.record import read_records
from kernel_foundry.exported_form import FormReport, FormRequest, FormResult
from kernel_foundry.sdk.export import export
from kernel_foundry.sdk.export.winner import Winner
from tests.export.unjudged import unjudged_winner

JUDGED_NS = 10_000.0


def judged(evaluation: Evaluation, nanoseconds: float) -> Evaluation:
    """The verdict with this time for each workload."""

    def timed(result: Any) -> Any:
        bounds = (nanoseconds, nanoseconds)
        timing = replace(result.timing, median_ns=nanoseconds, ci95_ns=bounds)
        return replace(result, warm_timing=timing)

    return replace(evaluation, workloads=tuple(map(timed, evaluation.workloads)))


class Host:
    """Runs, their winner, and a process that tries files, in place of all three.

    Attributes:
        requests: Files that were tried.
        results: What comes out of trying one, by the number of the trial and the workload.
        judgements: How often the winner was judged again.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        found = unjudged_winner()
        evaluation = judged(found.record.evaluation, JUDGED_NS)
        self.winner: Winner = replace(found, record=replace(found.record, evaluation=evaluation))
        self.runs: list[str] = []
        self.requests: list[FormRequest] = []
        self.kernels_ns: Callable[[int], float] = lambda _trial: JUDGED_NS
        self.more: dict[str, Any] = {}
        self.judged_again = 0
        monkeypatch.setattr(cli, "open_foundry", lambda **_: contextlib.nullcontext(self))
        monkeypatch.setattr(cli, "run_with_winner", self._run)
        monkeypatch.setattr(export, "winner_of_run", lambda _foundry, _run: self.winner)
        monkeypatch.setattr(export, "try_exported_form", self._tried)

    def _run(self, _foundry: Any, name: str) -> Any:
        self.runs.append(name)
        spec = SimpleNamespace(name=name or "newest", task=self.winner.record.task)
        return SimpleNamespace(spec=spec, best_speedup=2.0, best_speedup_interval=(1.9, 2.1))

    def _tried(self, request: FormRequest) -> FormReport:
        self.requests.append(request)
        time = self.kernels_ns(len(self.requests))
        usual: dict[str, Any] = {"kernels_ns": (time, time, time), "host_ns": 9_000.0}
        results = [FormResult(name=w.name, **(usual | self.more)) for w in request.workloads]
        return FormReport(results=tuple(results), container="tensor", mechanisms=("seccomp",))

    def evaluate(self, *_: Any, **__: Any) -> Evaluation:
        self.judged_again += 1
        return judged(self.winner.record.evaluation, JUDGED_NS)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Host:
    monkeypatch.chdir(tmp_path)
    return Host(monkeypatch)


def asked(*arguments: str) -> int:
    code: int = cli.command.main([*arguments], standalone_mode=False)
    return code


def test_the_newest_run_is_written_and_shown(
    host: Host, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert asked() == 0
    assert host.runs == [""]
    said = capsys.readouterr()
    assert read_records(tmp_path / "fast_blend.py") == (host.winner.record,)
    assert host.requests[-1].text == (tmp_path / "fast_blend.py").read_text()
    lines = said.out.splitlines()
    assert "verdict, warm" in said.out
    assert "CUDA graph" not in said.out
    assert lines[-1].startswith("fast_blend.py: a Python module")
    assert lines[-1].endswith("task blend, run newest")
    assert said.err == ""
    assert asked() == 0  # an export of this task is replaced


def test_its_json_has_all_times(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    host.more = {"graph_ns": 10_100.0}
    assert asked("--json", "-o", "own.py") == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["file"], answer["task"], answer["warnings"]) == ("own.py", "blend", [])
    assert [w["result"]["name"] for w in answer["workloads"]] == [
        "rows=8,cols=64",
        "rows=3,cols=96",
    ]
    first = answer["workloads"][0]
    assert first["verdict_ns"] == [JUDGED_NS] * 3
    assert first["result"]["graph_ns"] == 10_100.0
    assert answer["isolation"] == ["seccomp"]


def test_several_runs_make_one_file(
    host: Host, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert asked("large", "small", "-o", "both.py") == 0
    assert host.runs == ["large", "small"]
    assert read_records(tmp_path / "both.py") == (host.winner.record,) * 2
    assert capsys.readouterr().out.splitlines()[-1].endswith("run large, small")


def test_a_wrong_file_is_not_written(
    host: Host, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    host.more = {"failure": "wrong by 3 times what the tolerance allows"}
    assert asked() == 1
    assert "error: the exported file fails: rows=8,cols=64: wrong by 3" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_slow_file_is_measured_again_beside_a_new_verdict(
    host: Host, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    host.kernels_ns = lambda trial: JUDGED_NS * (1.06 if trial == 2 else 1.04)
    assert asked() == 0
    assert (len(host.requests), host.judged_again) == (3, 1)
    assert (tmp_path / "fast_blend.py").exists()
    capsys.readouterr()


def test_a_file_that_stays_slow_is_not_written(
    host: Host, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    host.kernels_ns = lambda _: JUDGED_NS * 1.06
    assert asked() == 1
    assert (len(host.requests), host.judged_again) == (3, 1)
    said = capsys.readouterr()
    assert "slower than what was judged: rows=8,cols=64: 10.6 µs, judged 10.0 µs" in said.err
    assert said.out == ""
    assert not list(tmp_path.iterdir())


def test_a_workload_whose_size_forward_reads_is_left_out_aloud(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    task = host.winner.record.task
    reads = task.reference.replace("self.linear.weight[0]", "self.linear.weight[0, :cols]")
    assert reads != task.reference
    task = replace(task, reference=reads)
    host.winner = replace(host.winner, record=replace(host.winner.record, task=task))
    assert asked("--json") == 0
    said = capsys.readouterr()
    answer = json.loads(said.out)
    assert [w["result"]["name"] for w in answer["workloads"]] == ["rows=8,cols=64"]
    (left,) = answer["left_out"]
    assert left["name"] == "rows=3,cols=96"
    assert left["reason"].startswith("forward reads a size of the file itself, which has cols = 64")
    assert said.err == f"warning: rows=3,cols=96 is left out: {left['reason']}\n"


@pytest.mark.parametrize(
    ("fixed_ns", "why"),
    [
        (10_200.0, "captured within fixed_weights(), which promises that they do not change, it"
         " takes 10.2 µs"),
        (None, "a captured call writes new results"),
    ],
)  # fmt: skip
def test_a_slow_graph_is_a_warning_with_the_way_out(
    host: Host, capsys: pytest.CaptureFixture[str], fixed_ns: float | None, why: str
) -> None:
    host.more = {"graph_ns": 12_200.0, "fixed_graph_ns": fixed_ns}
    assert asked() == 0
    said = capsys.readouterr()
    assert "as a CUDA graph" in said.out
    assert said.out.count("12.2 µs") == 2
    (first, _) = said.err.splitlines()
    expected = "warning: rows=8,cols=64 as a CUDA graph: 12.2 µs, judged 10.0 µs: "
    assert first.startswith(expected)
    assert why in first
    assert asked("--json") == 0
    assert why in json.loads(capsys.readouterr().out)["warnings"][0]
