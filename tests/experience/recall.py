"""How many of a file's queries find what a person would want to be shown."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from generator_svc.experience.library import ExperienceLibrary
from generator_svc.experience.seeds import seed_lessons
from generator_svc.store.store import GeneratorStore
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.lesson import LessonQuery


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    text: str
    expected: tuple[str, ...]
    found: tuple[str, ...]
    """Keys, best first."""

    @property
    def recall(self) -> float:
        """Share of what was expected that came."""
        return len(set(self.expected) & set(self.found)) / len(set(self.expected))


async def answers(path: Path, folder: Path, *, limit: int = 5) -> tuple[Answered, ...]:
    """Return what a new library answers to the queries of a file."""
    seeds = seed_lessons()
    key_by_symptom = {lesson.symptom: key for key, lesson in seeds.items()}
    store = GeneratorStore(f"sqlite:///{folder / 'generator.db'}")
    library = ExperienceLibrary(store, owns_store=True)
    answered = []
    for entry in _entries(path):
        expected = tuple(entry["expected"])
        assert set(expected) <= seeds.keys(), f"{path.name}: no such lesson: {expected}"
        hits = await library.search(query_of(entry), limit=limit)
        found = tuple(key_by_symptom[hit.lesson.symptom] for hit in hits)
        answered.append(Answered(text=entry.get("text", ""), expected=expected, found=found))
    await library.close()
    return tuple(answered)


def query_of(entry: dict[str, Any]) -> LessonQuery:
    return LessonQuery(
        language=Language(entry["language"]),
        findings=tuple(FindingKind(kind) for kind in entry.get("findings", ())),
        text=entry.get("text", ""),
        code=entry.get("code", ""),
        expert=entry.get("expert", ""),
    )


def _entries(path: Path) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = yaml.safe_load(path.read_text("utf-8"))
    return entries
