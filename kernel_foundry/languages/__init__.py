"""The kernel languages, one record each, in a folder and in `RECORDS`.

A record says what plans, prompts, replies and hints ask of a language. How it is built, read and
timed is in the record of its name in `evaluator_svc/languages`, recipes for it are in
`generator_svc/recipes`. Protos carry its name. CONTRIBUTING.md lists all that a new one needs.
"""

import re
from typing import Final

from kernel_foundry.languages.cuda import CUDA
from kernel_foundry.languages.kernel_language import Extent, KernelLanguage
from kernel_foundry.languages.sycl import SYCL

__all__ = [
    "Extent",
    "KernelLanguage",
    "fences",
    "is_word",
    "language_named",
    "language_of_block",
    "language_of_first_fence",
    "languages",
    "register",
]

RECORDS: dict[str, KernelLanguage] = {record.name: record for record in (SYCL, CUDA)}


_FENCE: Final = re.compile(r"^[ \t]*```+[ \t]*(\w+)", re.MULTILINE)


def register(record: KernelLanguage) -> None:
    """Add a language.

    Raises:
        ValueError: there is one of that name, or one of its words is taken.
    """
    taken = {word for other in RECORDS.values() for word in other.words}
    if record.name in RECORDS or taken & set(record.words):
        raise ValueError(f"{record.name} or one of its words is the name of another language")
    RECORDS[record.name] = record


def languages() -> tuple[KernelLanguage, ...]:
    """All languages, in the order in which they are shown."""
    return tuple(RECORDS.values())


def language_named(name: str) -> KernelLanguage:
    """Return the language called `name`.

    Raises:
        ValueError: there is none.
    """
    try:
        return RECORDS[name]
    except KeyError:
        known = ", ".join(RECORDS)
        raise ValueError(f"language {name!r} is unknown; known are {known}") from None


def fences() -> str:
    """The fences of all languages, as a message names them: "```sycl or ```cuda"."""
    return " or ".join(f"```{record.name}" for record in languages())


def is_word(word: str) -> bool:
    """Return whether `word` behind a fence names a language."""
    return any(word in record.words for record in languages())


def language_of_first_fence(text: str) -> KernelLanguage | None:
    """Return the language of the first block of a candidate's Markdown that names one."""
    words = (fence[1] for fence in _FENCE.finditer(text))
    return next((RECORDS[word] for word in words if word in RECORDS), None)


def language_of_block(word: str, text: str) -> KernelLanguage | None:
    """Return the language of a block of code, by the word behind its fence, then by its text."""
    for record in languages():
        if word in record.words:
            return record
    return next((record for record in languages() if record.mark.search(text)), None)
