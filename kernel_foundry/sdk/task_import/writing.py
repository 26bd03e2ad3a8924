"""Entries of a suite written into a folder as task files with their sidecars."""

import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kernel_foundry.errors import InvalidArgumentError, TaskInvalidError
from kernel_foundry.plain_yaml import write_yaml
from kernel_foundry.sdk.task_file import read_task, sidecar_path
from kernel_foundry.sdk.task_import.entry import ImportEntry, file_names
from kernel_foundry.sdk.task_import.formats import FORMATS, format_of
from kernel_foundry.sdk.task_import.suite_files import LONGEST_SOURCE, SuiteFiles

_MOST_ENTRIES: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedTask:
    """A task file that was written."""

    source: str
    task: str
    file: str
    workloads: int
    notes: tuple[str, ...]
    """What the suite's entry says and the task file does not keep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutEntry:
    """An entry that no task file was written for."""

    source: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedSuite:
    """What became of each entry of a suite."""

    format: str
    imported: tuple[ImportedTask, ...]
    left_out: tuple[LeftOutEntry, ...]


def import_suite(path: Path, out: Path, *, format_name: str = "auto") -> ImportedSuite:
    """Write a task file for each entry of the suite at `path` into the folder `out`.

    A file that exists and differs is not replaced. Nothing of the suite is executed.

    Raises:
        InvalidArgumentError: there is no suite at `path`, it has no or several formats or more
            than 10,000 entries, or `out` cannot be written to.
    """
    files = SuiteFiles(path)
    chosen = format_of(files) if format_name == "auto" else format_name
    entries: list[ImportEntry] = []
    for entry in FORMATS[chosen].read(files):
        if len(entries) == _MOST_ENTRIES:
            raise InvalidArgumentError(f"{path}: more than {_MOST_ENTRIES} tasks; import a part")
        entries.append(entry)
    if not entries:
        raise InvalidArgumentError(f"{path}: no task in format {chosen}")
    imported: list[ImportedTask] = []
    left_out: list[LeftOutEntry] = []
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".import-", dir=out) as scratch:
            for entry, name in _named(entries):
                written = _written(entry, name, Path(scratch), out)
                if isinstance(written, ImportedTask):
                    imported.append(written)
                else:
                    left_out.append(written)
    except OSError as error:
        raise InvalidArgumentError(f"{out}: {error.strerror}") from error
    return ImportedSuite(format=chosen, imported=tuple(imported), left_out=tuple(left_out))


def _named(entries: list[ImportEntry]) -> Iterable[tuple[ImportEntry, str]]:
    """Entries that cannot be imported take part: names stay when one of them can."""
    return zip(entries, file_names(entries), strict=True)


def _written(
    entry: ImportEntry, name: str, scratch: Path, out: Path
) -> ImportedTask | LeftOutEntry:
    def left_out(reason: str) -> LeftOutEntry:
        return LeftOutEntry(source=entry.source, reason=reason)

    if entry.reason:
        return left_out(entry.reason)
    if len(entry.reference.encode()) > LONGEST_SOURCE:
        return left_out(f"its task file would be larger than {LONGEST_SOURCE} bytes")
    draft = scratch / f"{name}.py"
    texts = {draft: entry.reference}
    if entry.settings:
        texts[sidecar_path(draft)] = write_yaml(dict(entry.settings))
    for path, text in texts.items():
        path.write_bytes(text.encode())
    try:
        task = read_task(draft)
    except TaskInvalidError as error:
        return left_out(error.message)
    places = {path: out / path.name for path in (draft, sidecar_path(draft))}
    for path, place in places.items():
        if os.path.lexists(place) and not _is_same(place, texts.get(path)):
            return left_out(f"{place} exists and differs; remove it or choose another --out")
    for path in texts:
        path.replace(places[path])
    return ImportedTask(
        source=entry.source,
        task=name,
        file=str(places[draft]),
        workloads=len(task.workloads),
        notes=entry.notes,
    )


def _is_same(place: Path, text: str | None) -> bool:
    if text is None or place.is_symlink() or not place.is_file():
        return False
    return place.stat().st_size == len(text.encode()) and place.read_bytes() == text.encode()
