"""`kfoundry suite` as a command: its JSON, its exit codes and its messages."""

import json
from pathlib import Path

import pytest

from kernel_foundry.cli.suite import command
from kernel_foundry.errors import AlreadyExistsError, InvalidArgumentError
from kernel_foundry.evidence.record import read_records
from tests.cli.conftest import CANDIDATE, TASK


@pytest.fixture
def tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KERNEL_FOUNDRY_DATA_DIR", str(tmp_path / "data"))
    folder = tmp_path / "tasks"
    folder.mkdir()
    (folder / "relu.py").write_text(TASK)
    return folder


def test_a_suite_runs_and_is_listed(
    tasks: Path, served: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kernels = tasks.parent / "kernels"
    kernels.mkdir()
    (kernels / "relu.md").write_text(CANDIDATE)
    asked = ["run", str(tasks), "--name", "small", "--device", "null", "--model", "recipes"]
    asked += ["--from", str(kernels), "--evaluations", "2", "--evaluator", served, "--json"]
    assert command.main([*asked, "--estimate"], standalone_mode=False) == 0
    estimate = json.loads(capsys.readouterr().out)
    assert (estimate["runs"], estimate["pace"]["runs"]) == (1, 0)
    assert command.main(asked, standalone_mode=False) == 0
    said = capsys.readouterr()
    answer = json.loads(said.out)
    assert answer["has_ended"]
    (run,) = answer["runs"]
    assert (run["task"], run["run"], run["state"]) == ("relu", "small.relu", "finished")
    assert run["evaluations"] >= 2
    assert "[0/1] relu begun on null:0" in said.err
    assert command.main(["list", "--json"], standalone_mode=False) == 0
    (listed,) = json.loads(capsys.readouterr().out)
    assert listed["runs"]["finished"] == 1
    with pytest.raises(AlreadyExistsError, match="--resume --name small"):
        command.main(asked, standalone_mode=False)
    asked[asked.index("small")] = "next"
    assert command.main([*asked, "--estimate"], standalone_mode=False) == 0
    estimate = json.loads(capsys.readouterr().out)
    assert estimate["pace"]["runs"] == 1
    assert estimate["hours"] > 0
    _show(tasks.parent, served, capsys)


def _cross(served: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With its own device alone there is nothing to judge, and without it nothing can be."""
    asked = ["matrix", "small", "--evaluator", served]
    assert command.main(asked, standalone_mode=False) == 0
    said = capsys.readouterr().out
    assert "there is no other class of devices" in said
    assert "tuned here" in said
    assert command.main([*asked, "--json"], standalone_mode=False) == 0
    found = json.loads(capsys.readouterr().out)
    (row,) = found["rows"]
    assert row["cells"][0]["as_it_is"]["tasks"] == 1
    (winner,) = found["winners"]
    assert (winner["task"], winner["as_it_is"]["outcome"]) == ("relu", "PASSED")


def _show(folder: Path, served: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every view of a suite that ended."""
    assert command.main(["show", "--json"], standalone_mode=False) == 0
    assert json.loads(capsys.readouterr().out)["summary"]["tasks"] == 1
    assert command.main(["show"], standalone_mode=False) == 0
    assert "of 1 task\n" in capsys.readouterr().out
    out = ["--out", str(folder / "out.html")]
    assert command.main(["report", "small", *out], standalone_mode=False) == 0
    assert command.main(["export", "--out", str(folder / "out")], standalone_mode=False) == 0
    written = {path.name for path in (folder / "out").iterdir()}
    assert {"results.csv", "results.json", "eval_results.json"} <= written
    (record,) = read_records(folder / "out" / "records" / "relu.json")
    assert record.attestation.digest == record.digest()
    (run,) = json.loads((folder / "out" / "results.json").read_text())["runs"]
    assert (run["task"], run["correct"]) == (record.task.name, True)
    capsys.readouterr()
    assert command.main(["compare", "small", "small"], standalone_mode=False) == 0
    assert "small against small, 1 task that both have" in capsys.readouterr().out
    both = ["matrix", "--side-by-side", "small", "small"]
    assert command.main(both, standalone_mode=False) == 0
    assert "small (null)" in capsys.readouterr().out
    _cross(served, capsys)
    verdicts = folder / "data" / "matrix" / "small"
    assert verdicts.exists()
    assert command.main(["delete", "small"], standalone_mode=False) == 0
    assert not verdicts.exists()
    assert command.main(["list", "--json"], standalone_mode=False) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_what_is_missing_is_said(tasks: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="no suite called 'none'"):
        command.main(["run", "--resume", "--name", "none"], standalone_mode=False)
    with pytest.raises(InvalidArgumentError, match="a folder of task files or a plan"):
        command.main(["run", str(tasks / "plan.yaml")], standalone_mode=False)
