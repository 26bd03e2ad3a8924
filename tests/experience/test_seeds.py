"""The hand-written lessons: all of them are good, errors name their place, changes are taken in."""

from dataclasses import replace
from pathlib import Path

import pytest

from generator_svc.experience.library import ExperienceLibrary
from generator_svc.experience.seeds import seed_lessons
from generator_svc.store.store import GeneratorStore
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.lesson import LessonOrigin
from kernel_foundry.domain.measures import Measures
from kernel_foundry.errors import InvalidArgumentError
from tests.experience.conftest import lesson

GOOD = """\
- key: pad-the-tile
  symptom: >-
    Bank conflicts.
  move: Pad each row.
  language: cuda
  findings: [bank_conflict]
  experts: [memory]
  before: [2, 1, 1]
  excerpt: |
    __shared__ float tile[32][33];
  source: https://docs.nvidia.com/
"""


def test_the_package_brings_lessons_for_both_languages() -> None:
    """At least forty, each with a source, none of them used yet."""
    seeds = seed_lessons().values()
    assert len(seeds) >= 40
    for language in Language:
        assert sum(seed.language is language for seed in seeds) >= 10
    assert all(seed.source and seed.findings for seed in seeds)
    assert {(seed.origin, seed.use_count) for seed in seeds} == {(LessonOrigin.SEED, 0)}


def test_a_file_is_read_as_it_is_meant(tmp_path: Path) -> None:
    """Every field, with blanks around texts gone; other files are left alone."""
    (tmp_path / "a.yaml").write_text(GOOD)
    (tmp_path / "README.md").write_text("no lesson")
    ((key, seed),) = seed_lessons(tmp_path).items()
    assert key == "pad-the-tile"
    expected = lesson(
        symptom="Bank conflicts.",
        move="Pad each row.",
        experts=("memory",),
        before=Measures(memory=2, algorithm=1, synchronization=1),
        excerpt="__shared__ float tile[32][33];",
        source="https://docs.nvidia.com/",
        origin=LessonOrigin.SEED,
    )
    assert seed == expected


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("- key: pad-the-tile", "- key: Pad"), "key is 'Pad'"),
        (("- key: pad-the-tile", "- device: sm_90"), "key is None"),
        (("move: Pad each row.", "move: ''"), "move is empty"),
        (("cuda", "opencl"), "'opencl' is no Language"),
        (("bank_conflict", "bank_fight"), "'bank_fight' is no FindingKind"),
        (("[2, 1, 1]", "[2, 1]"), "before: expected three levels"),
        (("[2, 1, 1]", "[2, 1, 9]"), "is 9"),
        (("source: https://docs.nvidia.com/", "sauce: x"), "sauce"),
        (("experts: [memory]", "origin: user"), "origin is not for a person"),
        (("experts: [memory]", "use_count: 9000"), "use_count is not for a person"),
        (("__shared__", "x" * 1600), "excerpt has"),
        (("- key", ": ["), "not valid YAML"),
        (("- key: pad-the-tile", "key: pad-the-tile"), "a.yaml"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_error_names_file_and_entry(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    """And says what is wrong with it."""
    (tmp_path / "a.yaml").write_text(GOOD.replace(*change))
    with pytest.raises(InvalidArgumentError, match=r"^a\.yaml") as raised:
        seed_lessons(tmp_path)
    assert said in raised.value.message


def test_a_key_comes_once(tmp_path: Path) -> None:
    """Over all files."""
    (tmp_path / "a.yaml").write_text(GOOD)
    (tmp_path / "b.yaml").write_text(GOOD)
    with pytest.raises(InvalidArgumentError, match=r"b\.yaml, entry 1 .*taken"):
        seed_lessons(tmp_path)


async def test_a_new_version_of_the_lessons_is_taken_in(sqlite_url: str) -> None:
    """A changed text keeps its id and its numbers, a new one comes, a withdrawn one goes."""
    old = lesson(origin=LessonOrigin.SEED)
    other = replace(old, symptom="Quite another thing.", move="Unlike the first.")
    store = GeneratorStore(sqlite_url)
    library = ExperienceLibrary(store, seeds={"pad": old, "withdrawn": other})
    pad, withdrawn = await library.lessons()
    await library.credit((pad.id, withdrawn.id), log_speedup=0.5, request_id="run/1")
    await library.close()

    better = replace(old, move="Pad each row by one element: banks differ then.")
    library = ExperienceLibrary(store, seeds={"pad": better, "new": replace(other, move="Now.")})
    renewed, new = await library.lessons()
    assert renewed == replace(better, id=pad.id, effect=0.5, use_count=1)
    assert (new.move, new.use_count) == ("Now.", 0)
    assert new.id not in (pad.id, withdrawn.id), "an id never means another lesson"
    await library.close()
    await store.close()
