"""Concepts: what prose and code of kernels are about, by the cues of `concepts.yaml`."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from importlib import resources
from typing import Final

import yaml

from kernel_foundry.domain.digest import content_digest

_WORD: Final = re.compile(r"[a-z_][a-z0-9_]*|\d+")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_]\w*")
_ENDINGS: Final = (
    "ations",
    "ation",
    "isings",
    "ising",
    "ings",
    "ing",
    "ised",
    "ized",
    "ies",
    "ied",
)
_SHORT_ENDINGS: Final = ("ed", "es", "ly", "er", "or", "s", "e")
_LEAST_STEM: Final = 3
_STOP_WORDS: Final = frozenset(
    _WORD.findall(
        "a an and are as at be but by can each for from has have here how if in into is it its "
        "more most no not of off on once one only or other over same so still such than that "
        "the their them then there they this those to too two up use very was what when where "
        "which while who why will with without would"
    )
)


class Concepts:
    """The concepts of one file."""

    def __init__(self, text: str) -> None:
        table: Mapping[str, Mapping[str, Sequence[str]]] = yaml.safe_load(text)
        self.names: Final = tuple(sorted(table))
        self.digest: Final = content_digest(text)
        self._of_words: Final[dict[str, set[str]]] = {}
        self._of_identifier: Final[dict[str, set[str]]] = {}
        self._of_beginning: Final[dict[str, set[str]]] = {}
        for name, cues in table.items():
            for cue in cues.get("text", ()):
                self._of_words.setdefault(" ".join(words(cue)), set()).add(name)
            for cue in cues.get("code", ()):
                known = self._of_beginning if cue.endswith("*") else self._of_identifier
                known.setdefault(cue.rstrip("*"), set()).add(name)
        self._longest: Final = max(len(cue.split()) for cue in self._of_words)

    def in_words(self, stems: Sequence[str]) -> dict[str, int]:
        """Return how many different cues of each concept stand in prose, given as `words`."""
        found = {
            " ".join(stems[start : start + length])
            for length in range(1, self._longest + 1)
            for start in range(len(stems) - length + 1)
        }
        return _count(self._of_words[cue] for cue in found & self._of_words.keys())

    def in_code(self, identifiers: Iterable[str]) -> dict[str, int]:
        """Return how many different identifiers speak of each concept."""
        return _count(self._of(identifier) for identifier in set(identifiers))

    def _of(self, identifier: str) -> set[str]:
        exact = self._of_identifier.get(identifier, set())
        lengths = range(2, len(identifier) + 1)
        beginnings = [self._of_beginning.get(identifier[:n], set()) for n in lengths]
        return exact.union(*beginnings)


@cache
def known_concepts() -> Concepts:
    """Return the package's concepts."""
    return Concepts(resources.files(__package__).joinpath("concepts.yaml").read_text("utf-8"))


def words(text: str) -> list[str]:
    """Return the stems of the words of `text` that say something, in order."""
    spaced = text.lower().replace("_", " ")
    return [stem(word) for word in _WORD.findall(spaced) if word not in _STOP_WORDS]


def identifiers(code: str) -> list[str]:
    """Return the identifiers and key words of `code`, in order."""
    return _IDENTIFIER.findall(code)


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return `word` without its inflection, roughly."""
    for endings in (_ENDINGS, _SHORT_ENDINGS):
        for ending in endings:
            if word.endswith(ending) and len(word) - len(ending) >= _LEAST_STEM:
                word = word.removesuffix(ending)
                break
    return word[:-1] if len(word) > _LEAST_STEM and word[-1] == word[-2] else word


def _count(found: Iterable[set[str]]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for names in found:
        for name in names:
            counts[name] = counts.get(name, 0) + 1
    return counts
