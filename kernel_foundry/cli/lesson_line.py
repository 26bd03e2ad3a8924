"""The lesson of the library that matches a wrong result, for the kernel's author."""

from typing import Final

from kernel_foundry.cli.name import as_called
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.finding import Severity
from kernel_foundry.domain.lesson import LessonQuery
from kernel_foundry.errors import KernelFoundryError
from kernel_foundry.plan.candidate_text import split
from kernel_foundry.printable import one_line
from kernel_foundry.sdk.client import Foundry

_LEAST_SCORE: Final = 0.57
"""Of eight kinds of wrong results, lessons above it were to the point and others below 0.57."""

_LONGEST_TEXT: Final = 4_000
"""Characters of messages that are asked for: the first ones tell enough."""


def lesson_line(foundry: Foundry, evaluation: Evaluation, candidate: str) -> str:
    """Return "lesson 17: …" for a wrong result that a lesson matches well, else "".

    Args:
        foundry: Has the library.
        evaluation: The verdict.
        candidate: The candidate's text, as it was judged.
    """
    if evaluation.outcome is not EvaluationOutcome.WRONG_RESULT:
        return ""
    errors = [f for f in evaluation.findings if f.severity is Severity.ERROR]
    query = LessonQuery(
        language=split(candidate).language,
        findings=tuple(dict.fromkeys(f.kind for f in errors)),
        text="\n".join(f.message for f in errors)[:_LONGEST_TEXT],
    )
    try:
        hits = foundry.ask_experience(lambda e: e.search(query, limit=1))
    except KernelFoundryError as error:
        return f"lessons are not known here: {error.message}"
    if not hits or hits[0].score < _LEAST_SCORE:
        return ""
    lesson = hits[0].lesson
    text = one_line(f"lesson {lesson.id}: {lesson.symptom} {lesson.move}")
    return f"{text} (more: {as_called('experience search')})"
