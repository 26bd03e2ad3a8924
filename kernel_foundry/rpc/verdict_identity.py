"""Whether a verdict from afar is on what was asked; an evaluator may be somebody else's."""

from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.foreign import ForeignRequest
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.errors import VerdictMismatchError


def require_asked(request: EvaluationRequest | ForeignRequest, evaluation: Evaluation) -> None:
    """Refuse a verdict on something else than the request's candidate and task.

    Raises:
        VerdictMismatchError: it is; the metadata names both digests.
    """
    _require("task", request.task.digest, evaluation.task)
    _require("candidate", request.source.digest, evaluation.candidate)


def _require(what: str, asked: str, found: str) -> None:
    if found != asked:
        raise VerdictMismatchError(
            f"the evaluator answered with a verdict on {what} {found[:16]!r}, which it was not "
            f"asked about (expected {asked[:16]}): it is broken, of another version, or not to be "
            "trusted",
            what=what,
            expected=asked,
            found=found,
        )
