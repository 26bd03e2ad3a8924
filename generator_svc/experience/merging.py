"""Credits, merges and drops lessons: their words and numbers.

Pure functions; the database is written in `keeping`.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from generator_svc.experience.columns import LessonColumns
from generator_svc.experience.concepts import identifiers
from generator_svc.experience.ranking import worth
from kernel_foundry.domain.lesson import Lesson, LessonOrigin
from kernel_foundry.plan.source_text import strip_comments

_LARGEST_EFFECT: Final = math.log(10.0)
"""A hopeless parent is easily outrun a hundredfold: that says little of what a lesson is worth."""

_WORDING: Final = {LessonOrigin.SEED: 2, LessonOrigin.USER: 1, LessonOrigin.LEARNT: 0}
"""Whose words are kept; the package's come back with its next version in any case."""


def bounded_effect(log_speedup: float) -> float:
    """Return the effect that a measured log speed-up counts as."""
    return min(max(log_speedup, -_LARGEST_EFFECT), _LARGEST_EFFECT)


def credited(lesson: Lesson, log_speedup: float | None) -> Lesson:
    """Return `lesson` with one more use: its proposal's log speed-up, None when it failed."""
    if log_speedup is None:
        return replace(
            lesson, use_count=lesson.use_count + 1, failure_count=lesson.failure_count + 1
        )
    passes = lesson.use_count - lesson.failure_count
    effect = (lesson.effect * passes + bounded_effect(log_speedup)) / (passes + 1)
    return replace(lesson, use_count=lesson.use_count + 1, effect=effect)


def says_the_same(known: Lesson, new: Lesson) -> bool:
    """Return whether two lessons whose vectors are alike are one: for the same language and kinds.

    Vectors are blind to operators and numbers. Where these are all that two repairs differ by,
    they are the repair, and both stay.
    """
    answers_same = (
        bool(set(known.findings) & set(new.findings)) or not known.findings + new.findings
    )
    return known.language is new.language and answers_same and not _mend_otherwise(known, new)


def merged(known: Lesson, new: Lesson) -> Lesson:
    """Return one lesson of two that say the same: numbers pooled, the better wording kept.

    The package's wording is better than a user's, and that than a learnt one; otherwise one with
    code, then the older one.
    """
    better, other = (new, known) if _wording(new) > _wording(known) else (known, new)
    better_passes = better.use_count - better.failure_count
    other_passes = other.use_count - other.failure_count
    passes = better_passes + other_passes
    effect = (
        (better.effect * better_passes + other.effect * other_passes) / passes
        if passes
        else better.effect
    )
    return replace(
        better,
        id=known.id,
        device=known.device if known.device == new.device else "",
        experts=_roles(known.experts, new.experts),
        before=better.before or other.before,
        after=better.after or other.after,
        effect=effect,
        use_count=known.use_count + new.use_count,
        failure_count=known.failure_count + new.failure_count,
    )


def worst(lessons: Sequence[Lesson], count: int) -> tuple[int, ...]:
    """Return the ids of the `count` lessons that are worth least; of equal ones the oldest."""
    columns = LessonColumns()
    for lesson in lessons:
        columns.put(lesson)
    worths = worth(columns, slice(None))
    ids = np.array([lesson.id for lesson in lessons])
    order = np.lexsort((ids, worths))
    return tuple(int(ids[position]) for position in order[:count])


def _mend_otherwise(one: Lesson, other: Lesson) -> bool:
    """Return whether two learnt repairs have code of the same names that is not the same."""
    repairs = [x for x in (one, other) if x.origin is LessonOrigin.LEARNT and x.after is None]
    if len(repairs) < 2:
        return False
    codes = [strip_comments(lesson.excerpt).split() for lesson in repairs]
    names = [identifiers(" ".join(code)) for code in codes]
    return codes[0] != codes[1] and names[0] == names[1]


def _wording(lesson: Lesson) -> tuple[int, bool]:
    return _WORDING[lesson.origin], bool(lesson.excerpt)


def _roles(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    """Return the roles of either; no role stands for all of them."""
    return tuple(dict.fromkeys((*one, *other))) if one and other else ()
