"""The kernel languages: a definition of each one, in a folder and in `LANGUAGES`.

A definition has what plans, prompts, replies and hints need to know of a language. The backend of
the same name in `evaluator_svc/languages` says how it is built, read and timed; recipes for it are
in `generator_svc/recipes`. Protos carry its name. docs/new-language.md lists all
that a new one needs.
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

LANGUAGES: dict[str, KernelLanguage] = {language.name: language for language in (SYCL, CUDA)}


_FENCE: Final = re.compile(r"^[ \t]*```+[ \t]*(\w+)", re.MULTILINE)


def register(language: KernelLanguage) -> None:
    """Add a language.

    Raises:
        ValueError: there is one of that name, or one of its words is taken.
    """
    taken = {word for other in LANGUAGES.values() for word in other.words}
    if language.name in LANGUAGES or taken & set(language.words):
        raise ValueError(f"{language.name} or one of its words is the name of another language")
    LANGUAGES[language.name] = language


def languages() -> tuple[KernelLanguage, ...]:
    """All languages, in the order in which they are shown."""
    return tuple(LANGUAGES.values())


def language_named(name: str) -> KernelLanguage:
    """Return the language called `name`.

    Raises:
        ValueError: there is none.
    """
    try:
        return LANGUAGES[name]
    except KeyError:
        known = ", ".join(LANGUAGES)
        raise ValueError(f"language {name!r} is unknown; known are {known}") from None


def fences() -> str:
    """The fences of all languages, as a message names them: "```sycl or ```cuda"."""
    return " or ".join(f"```{language.name}" for language in languages())


def is_word(word: str) -> bool:
    """Return whether `word` behind a fence names a language."""
    return any(word in language.words for language in languages())


def language_of_first_fence(text: str) -> KernelLanguage | None:
    """Return the language of the first block of a candidate's Markdown that names one."""
    words = (fence[1] for fence in _FENCE.finditer(text))
    return next((LANGUAGES[word] for word in words if word in LANGUAGES), None)


def language_of_block(word: str, text: str) -> KernelLanguage | None:
    """Return the language of a block of code, by the word behind its fence, then by its text."""
    for language in languages():
        if word in language.words:
            return language
    return next((language for language in languages() if language.mark.search(text)), None)
