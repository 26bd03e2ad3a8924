"""Cases: candidates whose verdict is known beforehand, and the result of each.

Files of cases are read in `case_folder.py`.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kernel_foundry.domain.check import Trust
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.finding import FindingKind, Severity, errors_first
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.task import Task

GAIN_MARGIN: Final = 1.15
"""How much faster than its twin a case may be whose gain is denied: times are noisy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """The expected verdicts on a case."""

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
    """Whether the verdict on a case was as expected."""

    AS_EXPECTED = "as_expected"
    UNEXPECTED = "unexpected"
    ERROR = "error"
    """No verdict: something of ours failed."""
    NOT_RUN = "not_run"
    """It needs a device that is not here, and its build alone does not decide it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """The result of one case."""

    case: Case
    state: CaseState
    evaluation: Evaluation | None
    """None without a verdict."""
    detail: str = ""
    """What is not as expected, why a gain counts as denied, what failed, or why it was not run."""
    seconds: float = 0.0
    """Time to the verdict, without the task's admission."""

    @property
    def reason(self) -> str:
        """The reason for the outcome, in one sentence; empty if it passed without findings."""
        if self.evaluation is None:
            return self.detail
        if self.evaluation.passed and self.case.expectation.gain_denied:
            return ": ".join(filter(None, [self.detail, self.reported]))
        return self.reported

    @property
    def reported(self) -> str:
        """The verdict's own first reason; empty where it gives none."""
        if self.evaluation is None:
            return ""
        for finding in errors_first(self.evaluation.findings):
            if finding.severity is Severity.ERROR or finding.kind is FindingKind.SUSPICION:
                return finding.message
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A verdict beside what was expected."""

    is_expected: bool
    detail: str = ""
    """What is not as expected, or why a gain counts as denied."""


def compare(case: Case, evaluation: Evaluation, twin: Evaluation | None) -> Comparison:
    """Compare a verdict with the expectation of a case.

    Args:
        case: The case.
        evaluation: The verdict on it.
        twin: The verdict on the case's twin; None when it has none or there was no verdict.
    """
    expected = case.expectation
    if evaluation.passed and expected.gain_denied:
        return _gain(evaluation, twin)
    problem = _problem(expected, evaluation)
    return Comparison(is_expected=not problem, detail=problem)


def _problem(expected: Expectation, evaluation: Evaluation) -> str:
    if evaluation.outcome not in expected.outcomes:
        allowed = " or ".join(outcome.name for outcome in expected.outcomes)
        return f"expected {allowed}, got {evaluation.outcome.name}"
    kinds = {finding.kind for finding in evaluation.findings}
    if expected.finding is not None and expected.finding not in kinds:
        names = ", ".join(sorted(kinds)) or "none"
        return f"expected a finding {expected.finding.value}, and there is {names}"
    rules = {finding.rule for finding in evaluation.findings if finding.rule}
    if expected.rule and expected.rule not in rules:
        names = ", ".join(sorted(rules)) or "none"
        return f"expected the rule {expected.rule}, and those broken are: {names}"
    return ""


def _gain(evaluation: Evaluation, twin: Evaluation | None) -> Comparison:
    """Whether a case that passed has gained nothing by it."""
    if evaluation.trust is Trust.SUSPECT:
        return Comparison(is_expected=True, detail="gain denied: it is not trusted")
    if twin is None or twin.speedup is None or evaluation.speedup is None:
        problem = "it passed with full trust, and there is no honest time to compare with"
        return Comparison(is_expected=False, detail=problem)
    figures = f"{evaluation.speedup:.2f}×, its honest twin {twin.speedup:.2f}×"
    if evaluation.speedup <= GAIN_MARGIN * twin.speedup:
        return Comparison(is_expected=True, detail=f"gain denied: {figures}")
    return Comparison(is_expected=False, detail=f"it gained: {figures}")
