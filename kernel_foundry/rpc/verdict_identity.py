"""Whether a verdict from afar is on what was asked; an evaluator may be somebody else's."""

from kernel_foundry.domain.digest import content_digest
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.errors import VerdictMismatchError
from kernel_foundry.evidence.record import source_of
from kernel_foundry.plan.candidate_text import ExtractionError


def require_asked(request: EvaluationRequest, evaluation: Evaluation) -> None:
    """Refuse a verdict on something else than the request's candidate and task.

    Raises:
        VerdictMismatchError: it is; the metadata names both digests.
    """
    _require("task", {request.task.digest}, evaluation.task)
    _require("candidate", _digests(request.text), evaluation.candidate)


def _digests(text: str) -> set[str]:
    """What a verdict on a text may name it by: its source, or the raw text."""
    raw = content_digest(text)
    try:
        return {source_of(text).digest, raw}
    except ExtractionError:
        return {raw}


def _require(what: str, asked: set[str], found: str) -> None:
    if found not in asked:
        raise VerdictMismatchError(
            f"the evaluator answered with a verdict on {what} {found[:16]!r}, which it was not "
            f"asked about (expected {', '.join(sorted(a[:16] for a in asked))}): it is broken, of "
            "another version, or not to be trusted",
            what=what,
            expected=" or ".join(sorted(asked)),
            found=found,
        )
