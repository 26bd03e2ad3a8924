"""Cases: candidates whose verdict is known beforehand, and what became of each.

Knows nothing of files and of evaluators.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kernel_foundry.domain.check import Trust
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.finding import FindingKind, Severity
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.task import Task

GAIN_MARGIN: Final = 1.15
"""How much faster than its twin a case may be whose gain is denied: times are noisy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """Which verdicts on a case are right."""

    outcomes: tuple[EvaluationOutcome, ...]
    """Any of these."""
    finding: FindingKind | None = None
    """A finding of this kind must be among the verdict's."""
    rule: str = ""
    """A finding of this policy rule must be among the verdict's."""
    gain_denied: bool = False
    """Passing is right too where it brings nothing: suspect trust, or a time like the twin's."""
    twin: str = ""
    """Name of the honest case that a denied gain is measured by; empty: trust alone decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One candidate with the verdict that is expected of it."""

    name: str
    """Path of its file below the folder that was read, without the suffix."""
    text: str
    """The candidate, as a model would write it."""
    language: Language
    task: Task
    expectation: Expectation
    rows: tuple[int, ...] = ()
    """Rows of docs/cheats.md that it plays."""

    @property
    def is_honest(self) -> bool:
        """True for a look-alike that must pass."""
        expected = self.expectation
        return EvaluationOutcome.PASSED in expected.outcomes and not expected.gain_denied


class CaseState(StrEnum):
    """How a case went."""

    AS_EXPECTED = "as_expected"
    UNEXPECTED = "unexpected"
    ERROR = "error"
    """No verdict: something of ours failed."""
    NOT_RUN = "not_run"
    """It needs a device that is not here, and its build alone does not decide it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """What became of one case."""

    case: Case
    state: CaseState
    evaluation: Evaluation | None
    """None without a verdict."""
    detail: str = ""
    """What is not as expected, what failed, or why it was not run."""
    seconds: float = 0.0
    """Time to the verdict, without the task's admission."""

    @property
    def reason(self) -> str:
        """Why it came out so, in one sentence; empty for what passed without a word."""
        if self.evaluation is None:
            return self.detail
        for severity in (Severity.ERROR, Severity.WARNING):
            for finding in self.evaluation.findings:
                is_told = severity is Severity.ERROR or finding.kind is FindingKind.SUSPICION
                if finding.severity is severity and is_told:
                    return finding.message
        return ""


def unexpected(case: Case, evaluation: Evaluation, twin: Evaluation | None) -> str:
    """Return what about a verdict is not as expected; empty when all is.

    Args:
        case: The case.
        evaluation: The verdict on it.
        twin: The verdict on the case's twin; None when it has none or there was no verdict.
    """
    expected = case.expectation
    if evaluation.passed and expected.gain_denied:
        return _gain(evaluation, twin)
    if evaluation.outcome not in expected.outcomes:
        allowed = " or ".join(outcome.name for outcome in expected.outcomes)
        return f"expected {allowed}, and it came out as {evaluation.outcome.name}"
    kinds = {finding.kind for finding in evaluation.findings}
    if expected.finding is not None and expected.finding not in kinds:
        told = ", ".join(sorted(kinds)) or "none"
        return f"expected a finding {expected.finding.value}, and there is {told}"
    rules = {finding.rule for finding in evaluation.findings if finding.rule}
    if expected.rule and expected.rule not in rules:
        told = ", ".join(sorted(rules)) or "none"
        return f"expected the rule {expected.rule}, and those broken are: {told}"
    return ""


def _gain(evaluation: Evaluation, twin: Evaluation | None) -> str:
    """Return what a case has gained that should have gained nothing; empty when it has not."""
    if evaluation.trust is Trust.SUSPECT:
        return ""
    if twin is None or twin.speedup is None or evaluation.speedup is None:
        return "it passed with full trust, and there is no honest time to compare with"
    if evaluation.speedup <= GAIN_MARGIN * twin.speedup:
        return ""
    return f"it gained: {evaluation.speedup:.2f}×, its honest twin {twin.speedup:.2f}×"
