"""Exports replace exports of the same task, and nothing else that lies where they are written."""

from dataclasses import replace
from pathlib import Path

import pytest

from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.evidence.record import write_record
from kernel_foundry.sdk.export.destination import check_destination
from kernel_foundry.sdk.export.winner import Winner


def test_an_export_of_the_same_task_is_replaced(winner: Winner, text: str, tmp_path: Path) -> None:
    task = winner.record.task
    file, folder = tmp_path / "fast_linear.py", tmp_path / "fast_linear"
    check_destination(file, [task], is_folder=False)
    check_destination(folder / "deep", [task], is_folder=True)
    file.write_text(text)
    write_record(winner.record, folder / "evidence.json")
    check_destination(file, [task], is_folder=False)
    check_destination(folder, [replace(task, workloads=task.workloads[:1])], is_folder=True)


def test_what_is_no_export_of_the_task_stays(winner: Winner, text: str, tmp_path: Path) -> None:
    other = replace(winner.record.task, name="other")
    changed = replace(winner.record.task, reference=winner.record.task.reference + "# changed\n")
    export, program = tmp_path / "fast_linear.py", tmp_path / "own.py"
    project = tmp_path / "project"
    export.write_text(text)
    program.write_text("print('mine')\n")
    project.mkdir()
    (project / "CMakeLists.txt").write_text("project(mine)\n")
    for path, task, is_folder, why in (
        (export, other, False, f"an export of the task {winner.record.task.name}"),
        (export, changed, False, f"an export of another version of the task {changed.name}"),
        (program, other, False, "no export with a record"),
        (project, other, True, "no export with a record"),
        (project, other, False, "a folder"),
        (program, other, True, "a file"),
    ):
        with pytest.raises(InvalidArgumentError, match=f"exists and is {why}: give another name"):
            check_destination(path, [task], is_folder=is_folder)
    check_destination(program, [other], is_folder=False, replaces=True)


def test_a_folder_that_is_missing_is_said_at_once(winner: Winner, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="cannot be written: there is no folder"):
        check_destination(tmp_path / "none" / "a.py", [winner.record.task], is_folder=False)
