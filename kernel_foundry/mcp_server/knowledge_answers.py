"""What tools answer of experience: lessons, verified kernels, and what a kind of finding means."""

import math

from kernel_foundry.domain.lesson import LessonHit
from kernel_foundry.mcp_server.answers import Answer, shown, shown_list
from kernel_foundry.sdk.shelf import ShelfKernel


class LessonAnswer(Answer):
    """What earlier candidates taught."""

    id: int
    symptom: str
    move: str
    findings: list[str]
    mean_speedup: float
    """Speed-up of the candidates that it was shown for, over their parents."""
    uses: int
    failures: int
    score: float


class FindingExplanation(Answer):
    """What is known of a kind of finding."""

    kind: str
    advice: str
    """Usual causes and fixes; empty for kinds that are not failures: see lessons."""
    lessons: list[LessonAnswer]
    """Lessons for it from earlier candidates, the most useful first."""


class VerifiedKernel(Answer):
    """A winner of an earlier run, measured twice and fully trusted."""

    run: str
    task: str
    language: str
    device: str
    candidate: str
    """Digest; the resource kernel-foundry://candidates/DIGEST is its text."""
    speedup: float | None
    operators: list[str]
    likeness: float | None
    """Similarity of its reference to the task's, in [0, 1]; null if no task was given."""


def lesson_answer(hit: LessonHit) -> LessonAnswer:
    """Return a digest of a lesson that was found."""
    lesson = hit.lesson
    return LessonAnswer(
        id=lesson.id,
        symptom=shown(lesson.symptom),
        move=shown(lesson.move),
        findings=[kind.value for kind in lesson.findings],
        mean_speedup=math.exp(lesson.effect),
        uses=lesson.use_count,
        failures=lesson.failure_count,
        score=hit.score,
    )


def kernel_answer(kernel: ShelfKernel, *, is_compared: bool) -> VerifiedKernel:
    """Return a digest of a kernel on the shelf.

    Args:
        kernel: What was found.
        is_compared: Whether it was looked for by a task.
    """
    spec, best = kernel.run.spec, kernel.winner
    return VerifiedKernel(
        run=spec.name,
        task=shown(spec.task.name),
        language=spec.language.value,
        device=shown(spec.device),
        candidate=best.candidate.digest,
        speedup=best.evaluation.speedup,
        operators=shown_list(spec.operators),
        likeness=kernel.likeness if is_compared else None,
    )
