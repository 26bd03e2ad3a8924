"""The files of a suite, read within limits: nothing outside of its folder, and no links.

What a file's text means is read in the file of its format.
"""

import os
import stat
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Final

from kernel_foundry.bounded_json import parse_json
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.sdk.task_import.entry import NotRepresentableError
from kernel_foundry.shown_value import shown

LONGEST_SOURCE: Final = 1 << 18
"""Bytes of a Python file; an evaluator accepts no longer reference."""
_LONGEST_TABLE: Final = 1 << 26
"""Bytes of a file of JSON Lines."""
_LONGEST_LINE: Final = 1 << 21
_MOST_LINES: Final = 10_000
_MOST_NAMES: Final = 100_000
"""Files and folders in all; KernelBench has some hundreds."""
_DEEPEST: Final = 12


class SuiteFiles:
    """The files of a suite.

    Args:
        path: Its folder, or its only file.

    Raises:
        InvalidArgumentError: it does not exist, or is neither.
    """

    def __init__(self, path: Path) -> None:
        try:
            real = path.resolve(strict=True)
        except (OSError, RuntimeError) as error:
            raise InvalidArgumentError(
                f"{path}: {getattr(error, 'strerror', '') or error}"
            ) from error
        if not (real.is_dir() or real.is_file()):
            raise InvalidArgumentError(f"{path}: neither a file nor a folder")
        self.root = real if real.is_dir() else real.parent
        """The folder that nothing is read outside of."""
        self.name = real.stem if real.is_file() else real.name
        """What the suite may be called."""
        self._only = None if real.is_dir() else real.name
        self._count = 0

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """Every file and link below the folder, as relative paths in order; hidden ones left out.

        Raises:
            InvalidArgumentError: there are more than 100,000, or folders more than 12 deep.
        """
        return (self._only,) if self._only else tuple(sorted(self._walk(self.root, "", 1)))

    def named(self, name: str) -> tuple[str, ...]:
        """Return the paths of all files called `name`."""
        return tuple(path for path in self.paths if PurePosixPath(path).name == name)

    def ending(self, suffix: str) -> tuple[str, ...]:
        """Return the paths of all files that end in `suffix`."""
        return tuple(path for path in self.paths if path.endswith(suffix))

    def has(self, path: str) -> bool:
        """Return whether the suite has a file of that relative path."""
        return path in self._known

    def text(self, path: str, *, most: int = LONGEST_SOURCE) -> str:
        """Return the text of a file; `path` is relative to the folder.

        Raises:
            NotRepresentableError: it leaves the folder, is or passes a link, is no plain file, has
                more than `most` bytes, or is no UTF-8.
        """
        try:
            return self._bytes(path, most).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise NotRepresentableError(f"{shown(path)}: not UTF-8 text") from error

    def json(self, path: str) -> Any:
        """Return the value in a JSON file; raises as `text`."""
        return plain_json(self.text(path, most=_LONGEST_LINE), path)

    def lines(self, path: str) -> Iterator[tuple[int, str]]:
        """Return the lines of a file that are not blank, each with its number, from 1.

        Raises:
            NotRepresentableError: as `text`, or there are more than 10,000.
        """
        listed = self.text(path, most=_LONGEST_TABLE).split("\n")
        found = [(number, line) for number, line in enumerate(listed, 1) if line.strip()]
        if len(found) > _MOST_LINES:
            raise NotRepresentableError(
                f"{shown(path)}: {len(found)} lines, expected at most {_MOST_LINES}"
            )
        yield from found

    def json_lines(self, field: str) -> tuple[str, ...]:
        """Return the paths of all files of JSON Lines, some of which are called `.json`.

        Those are told from other JSON by their first line: an object that has `field`.
        """
        others = [path for path in self.ending(".json") if self.begins_with(path, field)]
        return (*self.ending(".jsonl"), *others)

    def begins_with(self, path: str, field: str) -> bool:
        """Return whether the first line of a file that is not blank is an object with `field`."""
        try:
            line, *_ = self._head(path, _LONGEST_LINE).lstrip().split(b"\n", 1)
            record = plain_json(line.decode("utf-8-sig"), path)
        except (UnicodeDecodeError, NotRepresentableError):
            return False
        return isinstance(record, dict) and field in record

    def beside(self, path: str, other: str) -> str:
        """Return the path of `other`, as a file at `path` calls it, relative to the folder.

        Raises:
            NotRepresentableError: it leaves the folder.
        """
        joined = os.path.normpath(PurePosixPath(path).parent / other[:4096])
        if other.startswith("/") or "\0" in other or joined.split("/")[0] == "..":
            raise NotRepresentableError(f"{shown(other)} lies outside of the imported folder")
        return joined

    def _walk(self, folder: Path, prefix: str, depth: int) -> Iterator[str]:
        if depth > _DEEPEST:
            raise InvalidArgumentError(
                f"{shown(prefix)}: folders more than {_DEEPEST} deep; import one of them"
            )
        with os.scandir(folder) as scan:
            for item in scan:
                self._count += 1
                if self._count > _MOST_NAMES:
                    raise InvalidArgumentError(
                        f"{self.root}: more than {_MOST_NAMES} files; import a part of it"
                    )
                if item.name.startswith(".") or item.name == "__pycache__":
                    continue
                if item.is_dir(follow_symlinks=False):
                    yield from self._walk(Path(item.path), f"{prefix}{item.name}/", depth + 1)
                else:
                    yield f"{prefix}{item.name}"

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.paths)

    def _bytes(self, path: str, most: int) -> bytes:
        content = self._head(path, most + 1)
        if len(content) > most:
            raise NotRepresentableError(f"{shown(path)}: larger than {most} bytes")
        return content

    def _head(self, path: str, most: int) -> bytes:
        """Return the first bytes of a file, `most` at most."""
        inside = self.beside("", path)
        whole = self.root / inside
        try:
            if whole.resolve(strict=True) != whole:
                raise NotRepresentableError(f"{shown(path)}: a link, or behind one")
            # A pipe would wait for who writes to it.
            descriptor = os.open(whole, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except (OSError, RuntimeError, ValueError) as error:
            why = getattr(error, "strerror", "") or error
            raise NotRepresentableError(f"{shown(path)}: {why}") from error
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise NotRepresentableError(f"{shown(path)}: no plain file")
            return file.read(most)


def plain_json(text: str, where: str) -> Any:
    """Return the value that a text of JSON describes.

    Raises:
        NotRepresentableError: it is longer than 2 MiB, no JSON, or nested too deeply, or has a
            number that is not finite.
    """
    if len(text) > _LONGEST_LINE:
        raise NotRepresentableError(f"{shown(where)}: longer than {_LONGEST_LINE} characters")
    try:
        return parse_json(text.encode(), most_values=1 << 18, parse_constant=_refuse)
    except ValueError as error:
        raise NotRepresentableError(f"{shown(where)}: no JSON: {str(error)[:200]}") from error


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a number")
