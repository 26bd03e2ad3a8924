"""Arguments of the SDK's calls, which accept tasks and candidates in more than one form."""

from pathlib import Path, PurePath
from typing import Final

from kernel_foundry.domain.candidate import LONGEST_CANDIDATE, KernelSource
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.plan.candidate_text import split
from kernel_foundry.sdk.task_file import read_task
from kernel_foundry.text_file import read_text_file

_LONGEST_FILE_NAME: Final = 4096
"""Characters, with its folders."""


def as_source(candidate: KernelSource | str | Path) -> KernelSource:
    """Return a candidate, from its text or its file.

    Raises:
        ExtractionError: the text holds no candidate.
        InvalidArgumentError: as `as_text`.
    """
    if isinstance(candidate, KernelSource):
        return candidate
    return split(as_text(candidate))


def as_text(candidate: str | Path) -> str:
    """Return the text of a candidate, read from its file if it is a path.

    Raises:
        InvalidArgumentError: it is the name of a file instead of its text.
    """
    if isinstance(candidate, Path):
        return read_text_file(candidate, LONGEST_CANDIDATE)
    is_one_line = "\n" not in candidate and len(candidate) <= _LONGEST_FILE_NAME
    if is_one_line and PurePath(candidate).suffix:
        raise InvalidArgumentError(
            f"candidate {candidate!r} looks like the name of a file: pass Path({candidate!r}), or"
            " the candidate's text",
            field="candidate",
        )
    return candidate


def as_models(models: tuple[str, ...]) -> tuple[str, ...]:
    """Return models as a tuple.

    Raises:
        InvalidArgumentError: they are one string, whose letters would become names.
    """
    if isinstance(models, str):
        raise InvalidArgumentError(
            f"models={models!r}: expected a tuple, such as models=({models!r},)", field="models"
        )
    return tuple(models)


def as_task(task: Task | Path | str) -> Task:
    """Return a task, read from its file if it is a path; raises as `read_task`."""
    return task if isinstance(task, Task) else read_task(Path(task))
