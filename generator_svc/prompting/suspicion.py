"""Why a verdict is suspect, without what a prompt must not tell."""

from generator_svc.held_out import HeldOut
from kernel_foundry.domain.check import CheckResult, Trust
from kernel_foundry.domain.evaluation import Evaluation


def suspicion(evaluation: Evaluation, held_out: HeldOut | None) -> str:
    """Return why a verdict is suspect: its suspicious checks; "" where it is not suspect.

    Args:
        evaluation: The verdict.
        held_out: What no prompt may tell; None: it is not known, and kinds alone are told.
    """
    if evaluation.trust is not Trust.SUSPECT:
        return ""
    reasons = []
    for check in evaluation.checks:
        if check.result is CheckResult.SUSPECT:
            is_told = held_out is not None and check.workload not in held_out.names
            note = held_out.without_sizes(check.note) if held_out and is_told else ""
            reasons.append(check.kind.value + (f": {note}" if note else ""))
    return "; ".join(dict.fromkeys(reasons))
