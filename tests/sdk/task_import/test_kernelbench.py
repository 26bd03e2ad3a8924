"""KernelBench's folders and their relatives become task files."""

import json
from pathlib import Path

import pytest

from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.sdk.task_file import read_task
from kernel_foundry.sdk.task_import.writing import import_suite
from tests.sdk.task_import.suite_folder import TASK, imported, reasons, write_files


@pytest.mark.parametrize(
    ("path", "task"),
    [
        ("level1/19_ReLU.py", "level1_19_ReLU"),
        ("KernelBench/level3/4_LeNet5.py", "level3_4_LeNet5"),
        ("level1/1_Square_matrix_multiplication_.py", "level1_1_Square_matrix_multiplication"),
        ("reference/activation/relu.py", "activation_relu"),
        ("relu.py", "relu"),
    ],
)
def test_a_file_becomes_a_task_file_as_it_stands(tmp_path: Path, path: str, task: str) -> None:
    suite = imported(tmp_path, {path: TASK})
    assert [(done.source, done.task) for done in suite.imported] == [(path, task)]
    assert read_task(tmp_path / f"out/{task}.py").reference == TASK
    assert suite.left_out == ()


def test_scripts_beside_levels_are_no_tasks(tmp_path: Path) -> None:
    suite = imported(tmp_path, {"level1/1_a.py": TASK, "scripts/run.py": "import os\n"})
    assert [done.task for done in suite.imported] == ["level1_1_a"]
    assert suite.left_out == ()


def test_levels_and_categories_of_one_suite_are_both_read(tmp_path: Path) -> None:
    files = {"level0/1_a.py": TASK, "reference/activation/relu.py": TASK, "run.py": "import os\n"}
    suite = imported(tmp_path, files)
    assert [done.task for done in suite.imported] == ["level0_1_a", "activation_relu"]
    assert suite.left_out == ()


def test_winners_beside_tasks_are_no_tasks(tmp_path: Path) -> None:
    files = {
        "tasks/level_1/1_a.py": TASK,
        "best_agent_solutions/level_1/task_1.py": TASK,
        "best_agent_solutions/level_1/task_2.py": TASK,
    }
    suite = imported(tmp_path, files)
    assert [done.task for done in suite.imported] == ["level_1_1_a"]
    (source, reason), *others = reasons(suite).items()
    assert (source, others) == ("best_agent_solutions", [])
    assert "2 kernels" in reason


def test_a_file_without_a_model_is_named_with_its_reason(tmp_path: Path) -> None:
    files = {
        "level1/1_a.py": TASK,
        "level1/2_new.py": TASK.replace("Model", "ModelNew"),
        "level1/3_bad.py": "def f(:\n",
    }
    suite = imported(tmp_path, files)
    assert [done.task for done in suite.imported] == ["level1_1_a"]
    found = reasons(suite)
    assert found["level1/2_new.py"] == "no Model"
    assert "line 1" in found["level1/3_bad.py"]


def test_tasks_that_are_called_alike_get_names_of_their_own(tmp_path: Path) -> None:
    files = {"a/level1/1_a.py": TASK, "b/level1/1_A.py": TASK, "b/level1/2_b.py": TASK}
    suite = imported(tmp_path, files)
    names = [done.task for done in suite.imported]
    assert len({name.lower() for name in names}) == 3
    assert "level1_2_b" in names
    again = import_suite(tmp_path / "suite", tmp_path / "out")
    assert again == suite


def test_a_task_file_that_was_edited_is_not_replaced(tmp_path: Path) -> None:
    imported(tmp_path, {"relu.py": TASK})
    (tmp_path / "out/relu.py").write_text("mine")
    suite = import_suite(tmp_path / "suite", tmp_path / "out")
    assert "exists and differs" in reasons(suite)["relu.py"]
    assert (tmp_path / "out/relu.py").read_text() == "mine"


@pytest.mark.parametrize("file", ["h100.jsonl", "optimized_cuda_code/h100.json"])
def test_lines_with_a_reference_become_task_files(tmp_path: Path, file: str) -> None:
    lines = [
        json.dumps({"level_id": 1, "task_id": 19, "ref_code": TASK, "custom_code": "x"}),
        json.dumps({"level_id": 2, "task_id": 3, "ref_code": "x = 1"}),
        json.dumps({"level_id": 2, "task_id": 4}),
        "{",
    ]
    other = {"log.json": '{\n  "ref_code": ""\n}', "code.json": json.dumps({"code": "ref_code"})}
    suite = imported(tmp_path, {file: "\n".join(lines), **other})
    assert suite.format == "cuda-l1"
    assert [done.task for done in suite.imported] == ["level1_19"]
    assert read_task(tmp_path / "out/level1_19.py").reference == TASK
    found = reasons(suite)
    assert list(found) == [f"{file}, line {number}" for number in (2, 3, 4)]
    assert "no JSON" in found[f"{file}, line 4"]


def test_a_folder_without_tasks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="no tasks of a known format"):
        imported(tmp_path, {"README.md": "words"})
    with pytest.raises(InvalidArgumentError, match="No such file"):
        import_suite(tmp_path / "nothing", tmp_path / "out")


def test_a_single_file_is_a_suite_of_one(tmp_path: Path) -> None:
    write_files(tmp_path, {"suite/a.py": TASK, "suite/b.py": TASK})
    suite = import_suite(tmp_path / "suite/a.py", tmp_path / "out")
    assert [done.task for done in suite.imported] == ["a"]
