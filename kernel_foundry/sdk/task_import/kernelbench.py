"""KernelBench and what shares its form: one Python file a task, which is a task file as it stands.

Folders `level*/` with `19_ReLU.py` (KernelBench, METR's filtered set), `reference/<category>/`
(MultiKernelBench), or any folder of such files. METR's winners, which lie beside its tasks, are no
tasks. Its form in JSON Lines is in `cuda_l1.py`.
"""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from kernel_foundry.errors import TaskInvalidError
from kernel_foundry.quantity_text import counted
from kernel_foundry.sdk.task_import.entry import ImportEntry, NotRepresentableError
from kernel_foundry.sdk.task_import.one_file import one_file
from kernel_foundry.sdk.task_import.suite_files import SuiteFiles
from kernel_foundry.task_source import missing_names, parse_reference

_LEVEL = re.compile(r"level_?\d+")
_WINNERS = "best_agent_solutions"


def is_kernelbench(files: SuiteFiles) -> bool:
    """Return whether there are Python files."""
    return bool(files.ending(".py"))


def read_kernelbench(files: SuiteFiles) -> Iterator[ImportEntry]:
    """Return an entry for each Python file in a folder of tasks."""
    found = [path for path in files.ending(".py") if PurePosixPath(path).name != "__init__.py"]
    winners = [path for path in found if _is_winner(path)]
    if winners:
        folder = winners[0].split(f"{_WINNERS}/")[0] + _WINNERS
        kernels = counted(len(winners), "kernel")
        reason = f"{kernels} for the tasks: `kfoundry suite judge` takes the folder"
        yield ImportEntry(source=folder, name=_WINNERS, reason=reason)
    for path in _task_paths([path for path in found if not _is_winner(path)]):
        name = "_".join(PurePosixPath(path).with_suffix("").parts[-2:])
        try:
            text = one_file(files, path)
            check_reference(text, path)
        except NotRepresentableError as error:
            yield ImportEntry(source=path, name=name, reason=str(error))
        else:
            yield ImportEntry(source=path, name=name, reference=text)


def check_reference(text: str, where: str) -> None:
    """Refuse a text that is no task.

    Raises:
        NotRepresentableError: it is no Python, or lacks a name that every task has.
    """
    try:
        tree = parse_reference(text, file_name=where)
    except TaskInvalidError as error:
        raise NotRepresentableError(error.message) from error
    if missing := missing_names(tree):
        raise NotRepresentableError(f"no {' and no '.join(missing)}")


def _is_winner(path: str) -> bool:
    return _WINNERS in PurePosixPath(path).parts[:-1]


def _task_paths(found: list[str]) -> list[str]:
    """Where the suite has folders of levels or categories, the files in them alone."""
    listed = [path for path in found if _is_listed(PurePosixPath(path).parts[:-1])]
    return listed or found


def _is_listed(folders: tuple[str, ...]) -> bool:
    """Whether a file lies in a folder of a level, or of a category of references."""
    return any(map(_LEVEL.fullmatch, folders)) or "reference" in folders[:-1]
