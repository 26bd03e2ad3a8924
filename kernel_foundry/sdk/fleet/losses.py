"""Candidates that evaluators were lost with: after two losses one is not tried again.

One evaluator that is lost twice counts as two.

The verdict is CRASHED, with a finding that names the evaluators: a candidate that takes a host down
did crash something, and the run goes on. Nobody signs for it.
"""

import time
from collections import OrderedDict
from typing import Final

from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.finding import Finding, FindingKind, Severity
from kernel_foundry.domain.foreign import ForeignRequest
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.sweep import ConfigurationResult, ConfigurationTimes, Validity

MOST_LOSSES: Final = 2
"""Losses with one candidate, of different evaluators or of one."""

_REMEMBERED: Final = 4096
"""Candidates."""


class Losses:
    """Which evaluators were lost while they judged which candidate."""

    def __init__(self) -> None:
        self._lost: OrderedDict[str, tuple[str, ...]] = OrderedDict()

    def note(self, candidate: str, member: str) -> None:
        """Note that a member was lost while it judged the candidate of a digest."""
        self._lost[candidate] = (*self._lost.pop(candidate, ()), member)
        while len(self._lost) > _REMEMBERED:
            self._lost.popitem(last=False)

    def of(self, candidate: str) -> tuple[str, ...]:
        """Return the members that were lost with a candidate, in order."""
        return self._lost.get(candidate, ())

    def is_quarantined(self, candidate: str) -> bool:
        """Return whether a candidate is not to be judged any more."""
        return len(self.of(candidate)) >= MOST_LOSSES

    def verdict(self, request: EvaluationRequest | ForeignRequest) -> Evaluation:
        """Return the verdict on a candidate in quarantine."""
        return Evaluation(
            candidate=request.source.digest,
            task=request.task.digest,
            device=request.device,
            outcome=EvaluationOutcome.CRASHED,
            findings=(self._finding(request.source.digest),),
        )

    def swept(self, candidate: str) -> ConfigurationResult:
        """Return the last result of a sweep of a candidate in quarantine."""
        return ConfigurationResult(
            configuration=(),
            validity=Validity.RUNTIME,
            outcome=EvaluationOutcome.CRASHED,
            times=ConfigurationTimes(),
            findings=(self._finding(candidate),),
            finished_unix_s=time.time(),
            total=1,
        )

    def _finding(self, candidate: str) -> Finding:
        lost = self.of(candidate)
        return Finding(
            kind=FindingKind.HOST_LOST,
            severity=Severity.ERROR,
            message=f"an evaluator was lost {len(lost)} times while it judged this"
            f" ({', '.join(lost)}); it is not tried again",
            hint="if the evaluators were stopped by something else, judge it again in a new run",
        )
