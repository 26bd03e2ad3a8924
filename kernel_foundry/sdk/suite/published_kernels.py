"""Published kernels, each with the task that it is for; nothing in them is run.

In a folder files are called like their task (`relu.py`, `relu.json`), as in KernelBench's runs
(`level_1_problem_19_sample_0_kernel.py`), or begin with the task's number (`level1_19_ReLU.py`,
`19_ReLU.py`). In JSON Lines, `.jsonl` or `.json`, each line has `level_id`, `task_id` and
`custom_code` (CUDA-L1).
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from kernel_foundry.domain.foreign import ForeignSource
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.sdk.foreign_file import FOREIGN_ENDINGS, python_of, solution_of
from kernel_foundry.sdk.task_import.entry import NotRepresentableError
from kernel_foundry.sdk.task_import.suite_files import SuiteFiles, plain_json

_NUMBERED: Final = re.compile(
    r"(?:level_?(?P<level>[0-9]{1,9})_)?(?:problem_)?(?P<problem>[0-9]{1,9})(?:_.*)?"
)
_CODE: Final = "custom_code"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedKernel:
    """One kernel, and where it stands."""

    place: str
    """File, or file and line."""
    name: str
    """What its task may be called."""
    source: ForeignSource | None
    reason: str = ""
    """Why there is no source."""


def read_published(path: Path) -> tuple[PublishedKernel, ...]:
    """Return all kernels of a folder or a file, in order.

    Raises:
        InvalidArgumentError: there is none.
    """
    files = SuiteFiles(path)
    found = (*_of_files(files), *_of_lines(files))
    if not found:
        raise InvalidArgumentError(f"{path}: no .py, .json or .jsonl file", file=str(path))
    return found


def kernel_for(task: str, kernels: Iterable[PublishedKernel]) -> PublishedKernel | None:
    """Return the first kernel of a task: by its name, or else by level and number."""
    known = list(kernels)
    names = (task, re.sub(r"^level\d+_", "", task))
    by_name = [kernel for name in names for kernel in known if kernel.name == name]
    number = _number(task)
    by_number = [kernel for kernel in known if number and _number(kernel.name) == number]
    return next(iter((*by_name, *by_number)), None)


def _number(name: str) -> tuple[int, int] | None:
    """KernelBench's level, 0 where none is named, and the problem's number."""
    found = _NUMBERED.fullmatch(name)
    return (int(found["level"] or 0), int(found["problem"])) if found else None


def _of_files(files: SuiteFiles) -> Iterator[PublishedKernel]:
    lines = files.json_lines(_CODE)
    for ending in FOREIGN_ENDINGS:
        for path in files.ending(ending):
            if path in lines:
                continue
            read = solution_of if ending == ".json" else python_of
            name = PurePosixPath(path).stem
            try:
                source = read(files.text(path), path)
            except (NotRepresentableError, InvalidArgumentError) as error:
                yield PublishedKernel(place=path, name=name, source=None, reason=str(error))
            else:
                yield PublishedKernel(place=path, name=name, source=source)


def _of_lines(files: SuiteFiles) -> Iterator[PublishedKernel]:
    for path in files.json_lines(_CODE):
        try:
            yield from (_of_line(path, number, line) for number, line in files.lines(path))
        except NotRepresentableError as error:
            yield PublishedKernel(place=path, name="", source=None, reason=str(error))


def _of_line(path: str, number: int, line: str) -> PublishedKernel:
    place = f"{path}, line {number}"
    name = ""
    try:
        record = plain_json(line, "the line")
        fields = record if isinstance(record, dict) else {}
        level, task, code = (fields.get(key) for key in ("level_id", "task_id", _CODE))
        name = f"level{level}_{task}" if _is_name(level, task) else ""
        source = python_of(code if isinstance(code, str) else "", place)
    except (NotRepresentableError, InvalidArgumentError) as error:
        return PublishedKernel(place=place, name=name, source=None, reason=str(error))
    return PublishedKernel(place=place, name=name, source=source)


def _is_name(*parts: object) -> bool:
    return all(type(part) in (int, str) and str(part).isdecimal() for part in parts)
