"""Siblings: what was made of the same parent before, and how it ended, one line each."""

from typing import Final

from generator_svc.held_out import HeldOut
from generator_svc.prompting.suspicion import suspicion
from generator_svc.store.proposals import Sibling
from kernel_foundry.domain.candidate import Operator
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.finding import OF_THE_MOMENT, Severity
from kernel_foundry.domain.trick import named_trick

MOST_SIBLINGS: Final = 8
"""In a prompt: the newest."""

_LONGEST_REMARK: Final = 240
_PASSED: Final = EvaluationOutcome.PASSED.value


def remark_on(evaluation: Evaluation, held_out: HeldOut | None) -> str:
    """Return a verdict's first error, or why it is suspect, in one line; "" for neither.

    Args:
        evaluation: The verdict.
        held_out: What no prompt may tell; None: it is not known, and kinds alone are told.
    """
    if evaluation.passed:
        return _one_line(suspicion(evaluation, held_out))
    errors = [
        finding
        for finding in evaluation.findings
        if finding.severity is Severity.ERROR and finding.kind not in OF_THE_MOMENT
    ]
    if not errors:
        return ""
    if held_out is None:
        return errors[0].kind.value
    (first,) = held_out.redacted(errors[:1], evaluation)
    return _one_line(f"{first.kind.value}: {first.message}")


def sibling_lines(
    siblings: tuple[Sibling, ...],
    *,
    parent: Evaluation | None,
    operator: Operator,
    banned_tricks: tuple[str, ...],
    with_remarks: bool,
) -> tuple[str, ...]:
    """Return a line for each sibling: its verdict, and its idea in its writer's words.

    Args:
        siblings: The oldest first.
        parent: Verdict on their parent; None: they have none.
        operator: What is asked for.
        banned_tricks: An idea or remark that names one of them is not told.
        with_remarks: Whether prompts of the run tell findings.
    """
    if operator is Operator.TEMPLATISE:
        return ()
    lines = []
    for sibling in siblings:
        line = _ending(sibling, parent)
        told = (sibling.remark if with_remarks else "", sibling.idea)
        remark, idea = ("" if named_trick(banned_tricks, text) else text for text in told)
        line += f" ({remark})" if remark else ""
        lines.append(f"{line}: {idea}" if idea else line)
    return tuple(lines)


def _ending(sibling: Sibling, parent: Evaluation | None) -> str:
    if sibling.outcome is None:
        return "no verdict yet"
    if sibling.outcome != _PASSED or sibling.speedup is None:
        return sibling.outcome.upper()
    if parent is not None and parent.speedup:
        return f"PASSED, {sibling.speedup / parent.speedup:.3g}x the parent's speed"
    return f"PASSED, {sibling.speedup:.3g}x the speed of the fastest PyTorch baseline"


def _one_line(text: str) -> str:
    line = " ".join(text.replace("`", "'").split())
    return line if len(line) <= _LONGEST_REMARK else f"{line[: _LONGEST_REMARK - 1]}…"
