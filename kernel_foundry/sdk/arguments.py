"""What calls of the SDK are given: tasks, candidates and models, each in more than one form."""

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


def given_source(candidate: KernelSource | str | Path) -> KernelSource:
    """Return a candidate, from its text or its file.

    Raises:
        ExtractionError: the text holds no candidate.
        InvalidArgumentError: as `given_text`.
    """
    if isinstance(candidate, KernelSource):
        return candidate
    return split(given_text(candidate))


def given_text(candidate: str | Path) -> str:
    """Return the text of a candidate, or what its file has.

    Raises:
        InvalidArgumentError: it is the name of a file in the place of its text.
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


def given_models(models: tuple[str, ...]) -> tuple[str, ...]:
    """Return models as they are asked for.

    Raises:
        InvalidArgumentError: they are one text, whose letters would be taken for names.
    """
    if isinstance(models, str):
        raise InvalidArgumentError(
            f"models={models!r}: expected a tuple, such as models=({models!r},)", field="models"
        )
    return tuple(models)


def given_task(task: Task | Path | str) -> Task:
    """Return a task, or that of a file; raises as `read_task`."""
    return task if isinstance(task, Task) else read_task(Path(task))
