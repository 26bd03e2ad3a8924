"""`kfoundry import` as a command: its table, its JSON and its exit codes."""

import json
from pathlib import Path

from tests.cli.conftest import run_kfoundry
from tests.sdk.task_import.suite_folder import TASK, write_files


def test_the_command_says_what_became_of_each_file(tmp_path: Path) -> None:
    write_files(tmp_path / "suite", {"level1/1_a.py": TASK, "level1/2_b.py": "x = 1\n"})
    done = run_kfoundry(tmp_path, "import", "suite", "--out", "out", "--json")
    answer = json.loads(done.stdout)
    assert done.returncode == 1, done.stderr
    assert answer["format"] == "kernelbench"
    assert answer["imported"] == [
        {
            "source": "level1/1_a.py",
            "task": "level1_1_a",
            "file": "out/level1_1_a.py",
            "workloads": 1,
            "notes": [],
        }
    ]
    assert answer["left_out"] == [
        {"source": "level1/2_b.py", "reason": "no Model and no get_inputs"}
    ]
    (tmp_path / "suite/level1/2_b.py").unlink()
    done = run_kfoundry(tmp_path, "import", "suite", "--out", "out")
    assert done.returncode == 0, done.stderr
    assert "kernelbench: 1 imported into out, 0 not imported" in done.stdout


def test_a_path_without_tasks_is_bad_input(tmp_path: Path) -> None:
    done = run_kfoundry(tmp_path, "import", ".")
    assert done.returncode == 2
    assert "no tasks of a known format" in done.stderr


def test_an_imported_task_is_admitted(tmp_path: Path, served: str) -> None:
    write_files(tmp_path / "suite", {"level1/1_relu.py": TASK})
    assert run_kfoundry(tmp_path, "import", "suite").returncode == 0
    done = run_kfoundry(tmp_path, "admit", "tasks/level1_1_relu.py", "--json", evaluator=served)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["admitted"]
