"""Folders of cases are read as they are written, and what is wrong in them is named."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.language import Language
from kernel_foundry.errors import InvalidArgumentError, TaskInvalidError
from kernel_foundry.sdk.selftest.case_folder import read_cases
from kernel_foundry.sdk.task_file import read_task
from tests.sdk.selftest.scripted import TASK, candidate, write_cases

ANY = candidate("passed")
OWN_TASKS = Path(__file__).parents[2] / "cases" / "tasks"


def test_an_entry_is_an_outcome_a_list_of_outcomes_or_an_object(tmp_path: Path) -> None:
    entries = {
        "relu_a": "Rejected",
        "relu_b": ["PASSED", "wrong_result"],
        "relu_c": {"outcomes": ["rejected"], "finding": "data_flow", "rule": "x.y", "row": 3},
    }
    a, b, c = read_cases(write_cases(tmp_path, entries, dict.fromkeys(entries, ANY), "relu"))
    assert a.expectation.outcomes == (EvaluationOutcome.REJECTED,)
    assert b.expectation.outcomes == (EvaluationOutcome.PASSED, EvaluationOutcome.WRONG_RESULT)
    assert (a.is_honest, b.is_honest, c.is_honest) == (False, True, False)
    assert (c.expectation.finding, c.expectation.rule) == (FindingKind.DATA_FLOW, "x.y")
    assert c.rows == (3,)
    assert a.text == ANY


@pytest.mark.parametrize(
    ("case", "entry", "tasks", "expected"),
    [
        ("relu_large_odd", "passed", ("relu", "relu_large"), "relu_large"),
        ("odd", {"outcomes": "passed", "task": "relu"}, ("relu", "gelu"), "relu"),
        ("odd", "passed", ("relu",), "relu"),
    ],
)
def test_a_case_finds_its_task(
    tmp_path: Path, case: str, entry: Any, tasks: tuple[str, ...], expected: str
) -> None:
    (found,) = read_cases(write_cases(tmp_path, {case: entry}, {case: ANY}, *tasks))
    assert found.task.name == expected


def test_tasks_of_a_folder_above_serve_the_folders_below(tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "relu.py").write_text(TASK)
    for language in ("sycl", "cuda"):
        text = candidate("passed", language=language)
        write_cases(tmp_path / language / "honest", {"relu_x": "passed"}, {"relu_x": text})
    cuda, sycl = read_cases(tmp_path)
    assert [cuda.name, sycl.name] == ["cuda/honest/relu_x", "sycl/honest/relu_x"]
    assert [cuda.language, sycl.language] == [Language.CUDA, Language.SYCL]
    assert cuda.task == sycl.task


def test_a_task_of_the_projects_own_cases_is_found_by_its_name_alone(tmp_path: Path) -> None:
    named = {"outcomes": "passed", "task": "layernorm"}
    (found,) = read_cases(write_cases(tmp_path / "a", {"odd": named}, {"odd": ANY}))
    assert found.task == read_task(OWN_TASKS / "layernorm.py")
    with pytest.raises(InvalidArgumentError, match="no task's name begins its own"):
        read_cases(write_cases(tmp_path / "b", {"layernorm_odd": "passed"}, {"layernorm_odd": ANY}))


def test_a_twin_is_an_honest_case_of_the_same_language_and_task(tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "relu.py").write_text(TASK)
    denied = {"outcomes": "rejected", "gain_denied": True, "twin": "relu_plain"}
    write_cases(tmp_path / "cheats", {"relu_x": denied}, {"relu_x": ANY})
    with pytest.raises(InvalidArgumentError, match="no honest case 'relu_plain' in sycl"):
        read_cases(tmp_path)
    write_cases(tmp_path / "honest", {"relu_plain": "passed"}, {"relu_plain": ANY})
    cheat, honest = read_cases(tmp_path)
    assert (cheat.is_honest, honest.is_honest) == (False, True)


def test_gain_denied_makes_a_case_a_cheat_though_it_may_pass(tmp_path: Path) -> None:
    entry = {"outcomes": ["rejected", "passed"], "gain_denied": True}
    (case,) = read_cases(write_cases(tmp_path, {"relu_x": entry}, {"relu_x": ANY}, "relu"))
    assert not case.is_honest


@pytest.mark.parametrize(
    ("expected", "texts", "tasks", "message"),
    [
        ({}, {}, ("relu",), "no case here"),
        ({"a": "passed"}, {}, ("relu",), "expected.json: 'a': there is no a.md"),
        ({}, {"a": ANY}, ("relu",), "a.md: expected.json does not say"),
        ({"a": "passes"}, {"a": ANY}, ("relu",), "'a', outcomes: unknown 'passes'; known are"),
        ({"a": []}, {"a": ANY}, ("relu",), "'a', outcomes: expected an outcome"),
        ({"a": 7}, {"a": ANY}, ("relu",), "'a', outcomes: unknown 7"),
        ({"a": {"outcome": "passed"}}, {"a": ANY}, ("relu",), "'a', outcome: unknown key"),
        ({"a": {"outcomes": "passed", "finding": "odd"}}, {"a": ANY}, ("relu",), "unknown 'odd'"),
        ({"a": {"outcomes": "passed", "row": "3"}}, {"a": ANY}, ("relu",), "'a', row: expected"),
        ({"a": {"outcomes": "passed", "twin": "b"}}, {"a": ANY}, ("relu",), "goes with gain"),
        ({"a": {"outcomes": "passed", "gain_denied": 1}}, {"a": ANY}, ("relu",), "true or false"),
        ({"a": {"outcomes": "passed", "task": 1}}, {"a": ANY}, ("relu",), "expected a text"),
        ({"a": {"outcomes": "passed", "task": "b"}}, {"a": ANY}, ("relu",), "no task 'b'; known"),
        ({"a": "passed"}, {"a": ANY}, ("relu", "gelu"), "no task's name begins its own; known"),
        ({"a": "passed"}, {"a": ANY}, (), "known are none"),
        ({"a": "passed"}, {"a": "no code"}, ("relu",), "a.md: no ```sycl or ```cuda block"),
        ([], {}, ("relu",), "expected.json: expected an object"),
    ],
)
def test_what_is_wrong_is_named_with_its_file(
    tmp_path: Path,
    expected: Mapping[str, Any],
    texts: Mapping[str, str],
    tasks: tuple[str, ...],
    message: str,
) -> None:
    write_cases(tmp_path, expected, texts, *tasks)
    with pytest.raises(InvalidArgumentError, match=re.escape(message)) as caught:
        read_cases(tmp_path)
    assert str(tmp_path) in caught.value.metadata["file"]


def test_a_file_that_is_no_json_is_named(tmp_path: Path) -> None:
    (tmp_path / "expected.json").write_text("{")
    with pytest.raises(InvalidArgumentError, match=r"expected\.json: no JSON"):
        read_cases(tmp_path)


def test_a_task_file_that_is_no_task_is_named(tmp_path: Path) -> None:
    write_cases(tmp_path, {"a": "passed"}, {"a": ANY})
    (tmp_path / "relu.py").write_text("x = 1")
    with pytest.raises(TaskInvalidError, match=r"relu\.py: no Model"):
        read_cases(tmp_path)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="there is no such folder"):
        read_cases(tmp_path / "nowhere")


def test_a_readme_beside_the_cases_is_no_case(tmp_path: Path) -> None:
    write_cases(tmp_path, {"a": "passed"}, {"a": ANY, "README": "What these are."}, "relu")
    assert [case.name for case in read_cases(tmp_path)] == ["a"]
