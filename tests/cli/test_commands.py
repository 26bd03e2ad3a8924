"""The command line: exit codes, clean stdout, messages that say what to do."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import run_kfoundry


def test_help_names_every_command(folder: Path) -> None:
    result = run_kfoundry(folder, "--help")
    assert result.returncode == 0
    for command in ("optimize", "admit", "evaluate", "devices", "serve", "runs", "bench"):
        assert command in result.stdout
        assert run_kfoundry(folder, command, "--help").returncode == 0


@pytest.mark.slow
def test_evaluation_is_one_json_object_with_its_outcome_as_exit_code(folder: Path) -> None:
    right = run_kfoundry(folder, "evaluate", "relu.py", "relu.md", "--device", "null:0", "--json")
    assert right.returncode == 0, right.stderr
    verdict = json.loads(right.stdout)
    assert verdict["outcome"] == "PASSED"
    assert verdict["speedup"] > 0
    assert set(verdict["workloads"][0]["baselines"]) >= {"eager"}
    wrong = run_kfoundry(folder, "evaluate", "relu.py", "wrong.md", "--device", "null:0", "--json")
    assert wrong.returncode == 1
    assert json.loads(wrong.stdout)["outcome"] == "WRONG_RESULT"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("evaluate", "missing.py", "relu.md"), 2, "missing.py"),
        (("evaluate", "relu.py", "missing.md"), 2, "missing.md"),
        (("evaluate", "relu.py", "relu.md", "--set", "BLOCK"), 2, "NAME=VALUE"),
        (("admit", "no_model.py"), 2, "Model"),
        (("admit", "raises.py"), 2, "division by zero"),
        (("runs", "show", "nothing"), 2, "nothing"),
        (("runs", "best"), 2, "no run yet"),
        (("optimize",), 2, "TASK"),
        (("admit", "relu.py", "--evaluator", "unix:/nowhere.sock"), 3, "nowhere"),
    ],
)
def test_bad_input_has_its_exit_code_and_says_what_is_wrong(
    folder: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    result = run_kfoundry(folder, *arguments)
    assert code == result.returncode, result.stderr
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_missing_device_kind_is_reported_with_its_reason(folder: Path) -> None:
    result = run_kfoundry(folder, "devices", "--json")
    assert result.returncode == 0, result.stderr
    capabilities = json.loads(result.stdout)
    assert [d["id"] for d in capabilities["devices"]] == ["null:0"]
    assert capabilities["isolation"]["mechanisms"]
