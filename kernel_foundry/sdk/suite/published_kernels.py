"""Published kernels, each with the task that it is for; nothing in them is run.

In a folder files are called like their task (`relu.py`, `relu.json`), as in KernelBench's runs
(`level_1_problem_19_sample_0_kernel.py`), or begin with the task's number (`level1_19_ReLU.py`,
`19_ReLU.py`, METR's `level_1/task_19.py`). In JSON Lines, `.jsonl` or `.json`, each line has
`level_id`, `task_id` and `custom_code` (CUDA-L1).
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
from kernel_foundry.shown_value import shown

PUBLISHED_SUFFIXES: Final = (".json", ".jsonl")
"""Of files that hold published kernels and nothing else; Python may be a task as well."""
_NUMBERED: Final = re.compile(
    r"(?:level_?(?P<level>[0-9]{1,9})_)?(?:problem_|task_)?(?P<problem>[0-9]{1,9})(?:_.*)?"
)
_LEVEL_FOLDER: Final = re.compile(r"level_?([0-9]{1,9})")
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


def is_published(path: Path) -> bool:
    """Return whether a path is a file of published kernels, by its name."""
    return path.suffix in PUBLISHED_SUFFIXES and path.is_file()


def kernel_for(task: str, kernels: Iterable[PublishedKernel]) -> PublishedKernel | None:
    """Return the first kernel of a task: by its name, or else by level and number.

    A task that names no level has the kernels of its number, unless these are of several levels.
    """
    known = list(kernels)
    names = (task, re.sub(r"^level_?\d+_", "", task))
    by_name = [kernel for name in names for kernel in known if kernel.name == name]
    level, problem = _number(task)
    numbers = [(kernel, *_number(kernel.name)) for kernel in known]
    alike = [(kernel, of) for kernel, of, number in numbers if number == problem is not None]
    if level is None and len({of for _, of in alike}) == 1:
        level = alike[0][1]
    by_number = [kernel for kernel, of in alike if of == level]
    return next(iter((*by_name, *by_number)), None)


def _number(name: str) -> tuple[int | None, int | None]:
    """KernelBench's level, None where none is named, and the problem's number."""
    found = _NUMBERED.fullmatch(name)
    if found is None:
        return None, None
    return (int(found["level"]) if found["level"] else None), int(found["problem"])


def _name(files: SuiteFiles, path: str) -> str:
    """What a file's task may be called: its own name, with the level that a folder names."""
    *folders, file = PurePosixPath(files.root.name, path).parts
    stem = PurePosixPath(file).stem
    levels = [found[1] for folder in folders if (found := _LEVEL_FOLDER.fullmatch(folder))]
    level, problem = _number(stem)
    return f"level{levels[-1]}_{stem}" if levels and level is None and problem is not None else stem


def _of_files(files: SuiteFiles) -> Iterator[PublishedKernel]:
    lines = files.json_lines(_CODE)
    for ending in FOREIGN_ENDINGS:
        for path in files.ending(ending):
            if path in lines:
                continue
            read = solution_of if ending == ".json" else _python_of
            name = _name(files, path)
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
        source = _python_of(_text(code), place)
    except (NotRepresentableError, InvalidArgumentError) as error:
        return PublishedKernel(place=place, name=name, source=None, reason=str(error))
    return PublishedKernel(place=place, name=name, source=source)


def _text(code: object) -> str:
    """The code of a line; where a set has no kernel for a task, it is null."""
    if isinstance(code, str):
        return code
    raise NotRepresentableError(f"no text {_CODE!r}: {shown(code)}")


def _python_of(text: str, name: str) -> ForeignSource:
    return python_of(text, name, takes_model=True)


def _is_name(*parts: object) -> bool:
    return all(type(part) in (int, str) and str(part).isdecimal() for part in parts)
