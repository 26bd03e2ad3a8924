"""The destination of an export: checked before anything is built, so that no other file is lost."""

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from kernel_foundry.domain.task import Task
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.evidence.record import EvidenceRecord, is_program, read_records
from kernel_foundry.printable import one_line

_MOST_FILES: Final = 200
"""Of a folder that are looked at; an export has some twenty."""


def check_destination(
    path: Path, tasks: Iterable[Task], *, is_folder: bool, replaces: bool = False
) -> None:
    """Refuse a file or folder that cannot be written, or that is no export of these tasks.

    Args:
        path: File or folder to write.
        tasks: Of the runs that are exported.
        is_folder: Whether the export is a folder.
        replaces: Whether any file may be replaced.

    Raises:
        InvalidArgumentError: it cannot be written, or it exists and is something else.
    """
    if not path.exists():
        _check_parent(path, is_folder=is_folder)
        return
    if path.is_dir() != is_folder:
        what = "a file" if is_folder else "a folder"
        raise _refused(f"{path} exists and is {what}: give another name")
    if not os.access(path, os.W_OK):
        raise _refused(f"{path} cannot be written: Permission denied")
    if not replaces and (other := _other(path, tasks)):
        raise _refused(f"{path} exists and is {other}: give another name, or --replace")


def _check_parent(path: Path, *, is_folder: bool) -> None:
    parent = path.absolute().parent
    while is_folder and not parent.exists():
        parent = parent.parent
    if not parent.is_dir():
        raise _refused(f"{path} cannot be written: there is no folder {parent}")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise _refused(f"{path} cannot be written: Permission denied")


def _other(path: Path, tasks: Iterable[Task]) -> str:
    """What a path holds; "" where that is exports of `tasks`, or nothing."""
    if path.is_dir() and not any(path.iterdir()):
        return ""
    names = {_identity(task): task.name for task in tasks}
    found = list(_records(path))
    if not found:
        return "no export with a record"
    other = next((r.task for r in found if _identity(r.task) not in names), None)
    if other is None:
        return ""
    version = "another version of " if other.name in names.values() else ""
    return f"an export of {version}the task {one_line(other.name)}"


def _identity(task: Task) -> tuple[str, str, str]:
    """What an exported file is used for; workloads may change from one export to the next."""
    return task.name, task.reference, str(task.precision)


def _records(path: Path) -> Iterator[EvidenceRecord]:
    """Yield the records of an export that is there; of a folder: those of its files."""
    files = [path] if is_program(path) else []
    if path.is_dir():
        files = [f for f in islice(path.rglob("*"), _MOST_FILES) if _may_hold_records(f)]
    for file in files:
        try:
            yield from read_records(file)
        except InvalidArgumentError:
            continue  # a file without a record is what is looked for


def _may_hold_records(file: Path) -> bool:
    return file.is_file() and (is_program(file) or file.match("evidence*.json"))


def _refused(message: str) -> InvalidArgumentError:
    return InvalidArgumentError(message, field="out")
