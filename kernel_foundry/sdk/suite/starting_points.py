"""What the runs of a suite begin with: what is called like the task, or another suite's winners.

What comes of such files and runs is in `sdk/starting_point.py`.
"""

import glob
from collections.abc import Mapping, Sequence
from pathlib import Path

from kernel_foundry.domain.material import LONGEST_MATERIAL, MOST_MATERIALS, Material
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.sdk.starting_point import CANDIDATE_SUFFIX, MATERIAL_SUFFIXES
from kernel_foundry.sdk.suite.entry import EntryState
from kernel_foundry.sdk.suite.published_kernels import (
    PUBLISHED_SUFFIXES,
    PublishedKernel,
    is_published,
    kernel_for,
    read_published,
)
from kernel_foundry.sdk.suite.store.store import SuiteStore


def check_start_from(start_from: Sequence[str], store: SuiteStore) -> None:
    """Refuse what is neither a folder, a file of published kernels nor a suite.

    Raises:
        InvalidArgumentError: it names it.
    """
    for name in start_from:
        path = Path(name)
        if not path.is_dir() and not is_published(path) and name not in store.names():
            raise InvalidArgumentError(
                f"to start from: {name} is neither a folder nor published kernels"
                f" ({', '.join(PUBLISHED_SUFFIXES)}) nor a suite (`suite list` shows them)",
                field="from",
            )


def published_in(start_from: Sequence[str]) -> dict[str, tuple[PublishedKernel, ...]]:
    """Return the kernels of each file of published kernels, which may be a large one.

    Raises:
        InvalidArgumentError: a file holds none.
    """
    return {name: read_published(Path(name)) for name in start_from if is_published(Path(name))}


def starting_points(
    start_from: Sequence[str],
    task: str,
    store: SuiteStore,
    published: Mapping[str, Sequence[PublishedKernel]],
) -> tuple[Path | str | Material, ...]:
    """Return files, names of runs and code that a run of `task` begins with.

    Of a folder: `TASK.md`, `TASK.cu`, `TASK.json` and so on, and what lies in its folder `TASK`. Of
    published kernels: the task's. Of a suite: its finished runs of a task of that name.
    """
    found: list[Path | str | Material] = []
    for name in start_from:
        folder = Path(name)
        if name in published:
            found += _code(kernel_for(task, published[name]))
        else:
            found += _files(folder, task) if folder.is_dir() else _runs(store, name, task)
    return tuple(found)


def _files(folder: Path, task: str) -> list[Path | Material]:
    stem = glob.escape(task)
    paths = sorted((*folder.glob(f"{stem}.*"), *folder.glob(f"{stem}/*")))
    suffixes = (CANDIDATE_SUFFIX, *MATERIAL_SUFFIXES)
    found: list[Path | Material] = []
    for path in paths:
        if path.suffix in suffixes and path != folder / f"{task}.py":
            found.append(path)
        elif path.suffix == ".json" and path.is_file():
            found += _code(read_published(path)[0])
    return found


def _code(kernel: PublishedKernel | None) -> list[Material]:
    """The files of a kernel, its entry first, as far as a run is shown so many and so long ones.

    There are none of a kernel that cannot be read.
    """
    source = None if kernel is None else kernel.source
    if kernel is None or source is None:
        return []
    files = sorted(source.files, key=lambda file: file.path != source.entry_file)
    return [
        Material(name=f"{kernel.place}: {file.path}", text=file.text[:LONGEST_MATERIAL])
        for file in files[:MOST_MATERIALS]
    ]


def _runs(store: SuiteStore, suite: str, task: str) -> list[str]:
    return [
        entry.run
        for entry in store.find(suite).entries
        if entry.task.name == task and entry.state is EntryState.FINISHED
    ]
