"""The command as a process of its own: its JSON object, its table, its exit codes."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import CANDIDATE, TASK, run_kfoundry

pytestmark = pytest.mark.slow

ON = ("--device", "null:0")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where runs and caches stay."""
    return tmp_path_factory.mktemp("selftest")


def _cases(place: Path, name: str, expected: dict[str, Any]) -> Path:
    folder = place / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "relu.py").write_text(TASK)
    (folder / "relu_right.md").write_text(CANDIDATE)
    (folder / "relu_copied.md").write_text(CANDIDATE.replace("null_relu", "null_copy"))
    (folder / "expected.json").write_text(json.dumps(expected))
    return folder


def test_as_expected_is_success_and_one_json_object(place: Path, served: str) -> None:
    expected = {"relu_right": "passed", "relu_copied": ["rejected", "wrong_result"]}
    folder = _cases(place, "fine", expected)
    result = run_kfoundry(
        place, "selftest", "--cases", str(folder), *ON, "--json", evaluator=served
    )
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)
    assert set(told["probes"]["device.open@null:0"]) == {"passed", "detail", "figures"}
    assert told["cheats"] == {"total": 1, "refused": 1, "missed": []}
    assert told["honest"] == {"total": 1, "passed": 1, "refused": []}
    assert "relu_copied: WRONG_RESULT" in result.stderr


def test_what_is_not_as_expected_is_listed_with_what_came_instead(place: Path, served: str) -> None:
    expected = {"relu_right": "rejected", "relu_copied": "passed"}
    folder = _cases(place, "odd", expected)
    result = run_kfoundry(place, "selftest", "--cases", str(folder), *ON, evaluator=served)
    assert result.returncode == 1, result.stderr
    assert "relu_right: expected REJECTED, got PASSED" in result.stdout
    assert "relu_copied: expected PASSED, got WRONG_RESULT" in result.stdout
    assert "0 of 1 cheats caught (0.0%); 1 of 1 honest ones refused (100.0%)" in result.stdout


def test_cases_that_cannot_be_read_are_bad_input(place: Path) -> None:
    folder = _cases(place, "bad", {"relu_right": "passed", "relu_copied": "refused"})
    result = run_kfoundry(place, "selftest", "--cases", str(folder))
    assert result.returncode == 2
    assert "expected.json: 'relu_copied', outcomes: unknown 'refused'" in result.stderr


def test_without_such_a_device_a_part_is_missing(place: Path) -> None:
    result = run_kfoundry(place, "selftest", "--device", "cuda:0")
    assert result.returncode == 3
    assert "there is no device 'cuda:0'" in result.stderr
