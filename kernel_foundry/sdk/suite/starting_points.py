"""What the runs of a suite begin with: files called like the task, or another suite's winners.

What comes of such files and runs is in `sdk/starting_point.py`.
"""

import glob
from collections.abc import Sequence
from pathlib import Path

from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.sdk.starting_point import CANDIDATE_SUFFIX, MATERIAL_SUFFIXES
from kernel_foundry.sdk.suite.entry import EntryState
from kernel_foundry.sdk.suite.store.store import SuiteStore


def check_start_from(start_from: Sequence[str], store: SuiteStore) -> None:
    """Refuse what is neither a folder nor a suite.

    Raises:
        InvalidArgumentError: it names it.
    """
    for name in start_from:
        if not Path(name).is_dir() and name not in store.names():
            raise InvalidArgumentError(
                f"to start from: {name} is neither a folder nor a suite (`suite list` shows them)",
                field="from",
            )


def starting_points(
    start_from: Sequence[str], task: str, store: SuiteStore
) -> tuple[Path | str, ...]:
    """Return files and names of runs that a run of `task` begins with.

    Of a folder: `TASK.md`, `TASK.cu` and so on, and what lies in its folder `TASK`. Of a suite: its
    finished runs of a task of that name.
    """
    found: list[Path | str] = []
    for name in start_from:
        folder = Path(name)
        found += _files(folder, task) if folder.is_dir() else _runs(store, name, task)
    return tuple(found)


def _files(folder: Path, task: str) -> list[Path]:
    stem = glob.escape(task)
    paths = sorted((*folder.glob(f"{stem}.*"), *folder.glob(f"{stem}/*")))
    suffixes = (CANDIDATE_SUFFIX, *MATERIAL_SUFFIXES)
    return [p for p in paths if p.suffix in suffixes and p != folder / f"{task}.py"]


def _runs(store: SuiteStore, suite: str, task: str) -> list[str]:
    return [
        entry.run
        for entry in store.find(suite).entries
        if entry.task.name == task and entry.state is EntryState.FINISHED
    ]
