"""Lessons: what earlier candidates taught, with the effect that was measured.

The generator finds, credits and merges them: `generator_svc/experience`.
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kernel_foundry.domain.bounds import check_length
from kernel_foundry.domain.candidate import LONGEST_CANDIDATE
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.measures import Measures

MAX_EXCERPT_CHARS: Final = 1500
"""Longest piece of code in a lesson."""
LONGEST_QUERY: Final = 1 << 14
"""Characters of the text that lessons are searched by; embedding takes a microsecond for each."""

_NEEDED: Final = ("symptom", "move", "source")
_MOST_CHARS: Final = {
    "symptom": 2000,
    "move": 4000,
    "source": 1000,
    "excerpt": MAX_EXCERPT_CHARS,
    "device": 80,
}
_MOST_ROLES: Final = 16
_MOST_ROLE_CHARS: Final = 80
_MOST_USES: Final = 1_000_000
"""Far above what runs come to, and far below what a database's integer holds."""
_MOST_EFFECT: Final = math.log(1e6)
"""No kernel was ever a million times as fast as its parent; `math.exp` ends soon behind it."""

_LEAST_EFFECT: Final = math.log(1.02)
"""A mean effect of less cannot be told from none."""


class LessonOrigin(StrEnum):
    """Where a lesson comes from."""

    SEED = "seed"
    """Hand-written, part of the package."""
    USER = "user"
    """Added or imported by a user."""
    LEARNT = "learnt"
    """Written from a transition of a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """One piece of experience."""

    symptom: str
    """The observation, in one or two sentences."""
    move: str
    """The advice, and why it helps."""
    language: Language | None
    """None: all languages."""
    findings: tuple[FindingKind, ...] = ()
    """Kinds of finding that it answers."""
    experts: tuple[str, ...] = ()
    """Roles that it is for, such as "memory"; empty: all."""
    device: str = ""
    """Architecture it was seen on, such as "sm_90"; empty: any."""
    before: Measures | None = None
    after: Measures | None = None
    excerpt: str = ""
    """Code, at most `MAX_EXCERPT_CHARS`."""
    source: str
    """URL or document; of a learnt one its run and the child's digest."""
    origin: LessonOrigin
    effect: float = 0.0
    """Mean log speed-up over the parent of the judged proposals behind it, dimensionless."""
    use_count: int = 0
    """Judged proposals that it was learnt from or shown to."""
    failure_count: int = 0
    """Uses whose proposal did not pass."""
    id: int = 0
    """Row in the store; 0 before it is stored."""

    @property
    def has_effect(self) -> bool:
        """Whether the proposals behind it were faster or slower than their parents at all."""
        return abs(self.effect) >= _LEAST_EFFECT

    @property
    def is_empty(self) -> bool:
        """Whether it was learnt as a change of speed, and no change is left of it."""
        is_of_speed = self.origin is LessonOrigin.LEARNT and self.after is not None
        return is_of_speed and self.use_count > self.failure_count and not self.has_effect


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonQuery:
    """A query for lessons that help a proposal."""

    language: Language
    findings: tuple[FindingKind, ...] = ()
    text: str = ""
    """Messages of findings, operators of the reference, words of the task."""
    code: str = ""
    """The parent's device code."""
    expert: str = ""
    """Role that asks; empty: none in particular."""
    device: str = ""
    """Architecture."""
    before: Measures | None = None
    target: Measures | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonHit:
    """A lesson that was found."""

    lesson: Lesson
    similarity: float
    """Cosine between query and lesson, in [-1, 1]."""
    score: float
    """Score by which hits are ranked: similarity, matches and worth together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedLesson:
    """The result of adding a lesson."""

    lesson: Lesson
    """As stored."""
    is_new: bool
    """False when it was merged into a near-duplicate."""


def check_query(query: LessonQuery) -> None:
    """Refuse texts that would take long to embed.

    Raises:
        InvalidArgumentError: it says which field and what is allowed.
    """
    check_length("query.text", query.text, LONGEST_QUERY)
    check_length("query.code", query.code, LONGEST_CANDIDATE)


def lesson_fault(lesson: Lesson) -> str:
    """Return why a lesson cannot be kept; empty when it can."""
    for name, most in _MOST_CHARS.items():
        text = getattr(lesson, name)
        if not text.strip() and name in _NEEDED:
            return f"{name} is empty"
        if len(text) > most:
            return f"{name} has {len(text)} characters, expected at most {most}"
        if not _is_text(text):
            return f"{name} is not text: it has bytes or halves of characters that are not UTF-8"
    return _fault_of_roles(lesson.experts) or _fault_of_numbers(lesson)


def _fault_of_roles(roles: tuple[str, ...]) -> str:
    if len(roles) > _MOST_ROLES:
        return f"experts has {len(roles)} roles, expected at most {_MOST_ROLES}"
    for role in roles:
        if not role.strip() or len(role) > _MOST_ROLE_CHARS or not _is_text(role):
            return f"experts has {role[:_MOST_ROLE_CHARS]!r}, expected the name of a role"
    return ""


def _fault_of_numbers(lesson: Lesson) -> str:
    if not 0 <= lesson.failure_count <= lesson.use_count:
        return f"{lesson.failure_count} of {lesson.use_count} uses failed"
    if lesson.use_count > _MOST_USES:
        return f"{lesson.use_count} uses, expected at most {_MOST_USES}"
    if not abs(lesson.effect) <= _MOST_EFFECT:  # nor is "not a number"
        return f"effect is {lesson.effect}, expected a log speed-up within ±{_MOST_EFFECT:.1f}"
    return ""


def _is_text(text: str) -> bool:
    """Whether a file, a database and a message can carry `text`."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
