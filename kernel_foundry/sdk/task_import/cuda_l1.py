"""CUDA-L1: KernelBench's tasks as JSON Lines, the reference's text in a field.

The project calls such files `.json`; `.jsonl` is read as well.
"""

from collections.abc import Iterator
from typing import Any

from kernel_foundry.sdk.task_import.entry import ImportEntry, NotRepresentableError
from kernel_foundry.sdk.task_import.kernelbench import check_reference
from kernel_foundry.sdk.task_import.suite_files import SuiteFiles, plain_json
from kernel_foundry.shown_value import shown

_REFERENCE = "ref_code"


def is_cuda_l1(files: SuiteFiles) -> bool:
    """Return whether a file of JSON Lines has the field of references in its first line."""
    return any(files.begins_with(path, _REFERENCE) for path in files.json_lines(_REFERENCE))


def read_cuda_l1(files: SuiteFiles) -> Iterator[ImportEntry]:
    """Return an entry for each line of each file of JSON Lines."""
    for path in files.json_lines(_REFERENCE):
        try:
            yield from (_entry(path, number, line) for number, line in files.lines(path))
        except NotRepresentableError as error:
            yield ImportEntry(source=path, name=path, reason=str(error))


def _entry(path: str, number: int, line: str) -> ImportEntry:
    source = f"{path}, line {number}"
    try:
        record = _record(line)
    except NotRepresentableError as error:
        return ImportEntry(source=source, name=source, reason=str(error))
    level, task = record.get("level_id"), record.get("task_id")
    is_named = type(level) in (int, str) and type(task) in (int, str)
    name = f"level{shown(level)}_{shown(task)}".replace("'", "") if is_named else source
    try:
        check_reference(record[_REFERENCE], source)
    except NotRepresentableError as error:
        return ImportEntry(source=source, name=name, reason=str(error))
    return ImportEntry(source=source, name=name, reference=record[_REFERENCE])


def _record(line: str) -> dict[str, Any]:
    record = plain_json(line, "the line")
    if isinstance(record, dict) and isinstance(record.get(_REFERENCE), str):
        return record
    raise NotRepresentableError(f"no object with a text {_REFERENCE!r}: {shown(record)}")
