"""Lessons as prompts print them: symptom, what to do, what it was worth, code.

They are found by `experience`.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from generator_svc.held_out import HeldOut
from generator_svc.markdown import clip
from kernel_foundry.domain.lesson import MAX_EXCERPT_CHARS, Lesson
from kernel_foundry.domain.measures import DIMENSIONS

_MAX_SYMPTOM_CHARS: Final = 500
_MAX_MOVE_CHARS: Final = 1_000
_TELLING_USES: Final = 5
"""Fewest uses with which a share of failures is shown: proposals also fail for other reasons."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonView:
    """One lesson as a template prints it."""

    lesson: Lesson
    """The lesson itself, so that lessons left out of the prompt are known."""
    symptom: str
    move: str
    effect: str
    """The measured effect in words; empty if nothing was measured."""
    excerpt: str
    beside: str
    """Kind of finding that it is printed beside; empty: among the others."""


def lesson_views(
    lessons: tuple[Lesson, ...], held_out: HeldOut, *, kinds: Collection[str] = ()
) -> tuple[LessonView, ...]:
    """Return `lessons` in order.

    Args:
        lessons: The most useful first.
        held_out: What no lesson may tell either.
        kinds: Kinds of finding that have a place of their own in the prompt.
    """
    return tuple(
        LessonView(
            lesson=lesson,
            symptom=_line(held_out.without_names(lesson.symptom), _MAX_SYMPTOM_CHARS),
            move=_line(held_out.without_names(lesson.move), _MAX_MOVE_CHARS),
            effect=_effect(lesson),
            excerpt=clip(held_out.without_names(lesson.excerpt.strip("\n")), MAX_EXCERPT_CHARS),
            beside=next((kind.value for kind in lesson.findings if kind.value in kinds), ""),
        )
        for lesson in lessons
    )


def _line(text: str, max_chars: int) -> str:
    """Return `text` as one line, so that nothing in it looks like a part of the prompt."""
    return clip(" ".join(text.split()), max_chars).replace("\n", " ")


def _effect(lesson: Lesson) -> str:
    """Return the measured effect of a lesson in words, and how levels changed."""
    passed = lesson.use_count - lesson.failure_count
    parts = []
    if passed > 0 and lesson.has_effect:
        parts.append(f"{math.exp(lesson.effect):.2f}x the parent's speed in {_uses(passed)}")
    if lesson.failure_count and lesson.use_count >= _TELLING_USES:
        parts.append(f"{lesson.failure_count} of {lesson.use_count} did not pass")
    if lesson.before is not None and lesson.after is not None and passed > 0:
        before, after = lesson.before, lesson.after
        parts += [
            f"{name} level {getattr(before, name)} to {getattr(after, name)}"
            for name in DIMENSIONS
            if getattr(before, name) != getattr(after, name)
        ]
    return "; ".join(parts)


def _uses(count: int) -> str:
    return "one use" if count == 1 else f"{count} uses"
