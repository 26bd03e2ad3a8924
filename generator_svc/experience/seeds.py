"""The hand-written lessons: YAML files beside this one, checked when they are read.

A file is a list of lessons; `key` names a lesson over all versions of its text, the other entries
are the fields of `Lesson`.
"""

import re
from collections.abc import Iterator, Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any, Final

import yaml

from kernel_foundry.domain.digest import content_digest
from kernel_foundry.domain.lesson import Lesson, LessonOrigin
from kernel_foundry.domain.plain import to_json
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.lesson_file import lesson_from_fields

_KEY: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,79}")
_LOADER: Final = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
"""Python's own takes most of the time in which a new library is opened."""


def seed_lessons(folder: Traversable | None = None) -> Mapping[str, Lesson]:
    """Return the hand-written lessons by key.

    Args:
        folder: Of the files; None: the package's own.

    Raises:
        InvalidArgumentError: an entry is no lesson, or a key comes twice; the message names file
            and entry.
    """
    files = folder or resources.files(__package__).joinpath("lessons")
    lessons: dict[str, Lesson] = {}
    for file in sorted(files.iterdir(), key=lambda f: f.name):
        if file.name.endswith(".yaml"):
            for where, key, lesson in _read(file):
                if key in lessons:
                    raise _invalid(where, f"the key {key!r} is taken by another lesson")
                lessons[key] = lesson
    return lessons


def seeds_digest(lessons: Mapping[str, Lesson]) -> str:
    """Return a digest that changes whenever a hand-written lesson does."""
    return content_digest(*(f"{key} {to_json(lessons[key])}" for key in sorted(lessons)))


def _read(file: Traversable) -> Iterator[tuple[str, str, Lesson]]:
    """Yield where a lesson stands, its key, and the lesson."""
    try:
        entries = yaml.load(file.read_text("utf-8"), _LOADER)
    except yaml.YAMLError as error:
        raise _invalid(file.name, f"not valid YAML: {error}") from error
    if not isinstance(entries, list):
        raise _invalid(file.name, "expected a list of lessons")
    for number, entry in enumerate(entries, start=1):
        where = f"{file.name}, entry {number}"
        if not isinstance(entry, dict):
            raise _invalid(where, "expected fields of a lesson")
        fields: dict[str, Any] = dict(entry)
        key = fields.pop("key", None)
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            raise _invalid(where, f"key is {key!r}, expected small letters, digits and dashes")
        where = f"{file.name}, entry {number} ({key})"
        yield where, key, lesson_from_fields(fields, origin=LessonOrigin.SEED, where=where)


def _invalid(where: str, what: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"{where}: {what}", field=where)
