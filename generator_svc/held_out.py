"""Removes held-out workloads from the texts that models see.

Held-out workloads show whether a candidate is right on sizes that nobody tuned for. So their names,
and sizes that only they have, are removed from every text that could reveal them.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from kernel_foundry.domain.admission import Admission, WorkloadAdmission
from kernel_foundry.domain.check import CheckResult
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.finding import Figure, Finding
from kernel_foundry.domain.task import Task

HIDDEN_NAME: Final = "(a workload that is not shown)"
_HIDDEN_NUMBER: Final = "…"
_NUMBER: Final = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)?", re.ASCII)
"""A number that is not part of a name such as `out0` or `float32`."""
_LEAST_SECRET_SIZE: Final = 10
"""Smaller numbers appear in every text with other meanings."""
_REVEALING_NOTHING: Final = ("share", "factor", "over", "seconds")
"""Words in the names of figures that are ratios or limits of ours: no size follows from them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """Names and sizes of the held-out workloads."""

    names: tuple[str, ...]
    sizes: frozenset[int]
    """Sizes that no shown workload has."""

    def without_names(self, text: str) -> str:
        """Return `text` with a note in place of each hidden workload's name."""
        for name in self.names:
            text = text.replace(name, HIDDEN_NAME)
        return text

    def without_sizes(self, text: str) -> str:
        """Return `text` without names, and without numbers that only hidden workloads have."""
        # Compared as text: Python refuses to convert numbers of thousands of digits, as in a log.
        hidden_sizes = {str(size) for size in self.sizes}

        def shown(found: re.Match[str]) -> str:
            number = found.group()
            hidden = number.isdecimal() and number.lstrip("0") in hidden_sizes
            return _HIDDEN_NUMBER if hidden else number

        return _NUMBER.sub(shown, self.without_names(text))

    def redacted(self, findings: Iterable[Finding], evaluation: Evaluation) -> tuple[Finding, ...]:
        """Return findings without held-out names and sizes.

        Args:
            findings: All or some findings of `evaluation`.
            evaluation: The verdict. If a held-out workload failed it, the findings lose every
                number from which a size could follow.
        """
        is_of_hidden = _failed_hidden(evaluation)
        return tuple(self._finding(finding, is_of_hidden=is_of_hidden) for finding in findings)

    def _finding(self, finding: Finding, *, is_of_hidden: bool) -> Finding:
        names_hidden = any(name in finding.message for name in self.names)
        # Nothing says which workload a plan did not fit or a launch was refused for.
        message = self.without_sizes(finding.message)
        evidence = tuple(e for e in finding.evidence if e.value not in self.sizes)
        if is_of_hidden or names_hidden:
            message = _NUMBER.sub(_HIDDEN_NUMBER, message)
            evidence = tuple(e for e in evidence if _reveals_nothing(e))
        return Finding(
            kind=finding.kind,
            severity=finding.severity,
            message=message,
            line=finding.line,
            evidence=evidence,
            hint=self.without_sizes(finding.hint),
        )


def held_out_of(task: Task, admission: Admission) -> HeldOut:
    """Return the held-out names and sizes of `task`."""
    hidden = [w for w in admission.workloads if w.held_out]
    shown = [w for w in admission.workloads if not w.held_out]
    names = {w.name for w in task.workloads if w.held_out} | {w.workload for w in hidden}
    # Halves and doubles of shown sizes (spare workloads) are no secret.
    sizes = _sizes([w for w in hidden if not w.is_spare]) | {
        s.value for w in task.workloads if w.held_out for s in w.sizes
    }
    sizes -= _sizes(shown)
    return HeldOut(
        # The longest first: one name may be part of another.
        names=tuple(sorted(names, key=lambda name: (-len(name), name))),
        sizes=frozenset(size for size in sizes if size >= _LEAST_SECRET_SIZE),
    )


def _failed_hidden(evaluation: Evaluation) -> bool:
    """Return whether a held-out workload showed that the results are wrong, by any check.

    Workloads are judged one by one and the first wrong one ends the evaluation, so all findings
    about values are then about that workload.
    """
    failed = {c.workload for c in evaluation.checks if c.result is CheckResult.FAILED}
    return not evaluation.passed and any(
        w.held_out
        and (
            w.workload in failed
            or (
                w.correctness is not None
                and (w.correctness.mismatch_count > 0 or not w.correctness.bitwise_reproducible)
            )
        )
        for w in evaluation.workloads
    )


def _sizes(workloads: list[WorkloadAdmission]) -> set[int]:
    shapes = [tensor.shape for workload in workloads for tensor in workload.tensors]
    return {number for shape in shapes for number in (*shape, math.prod(shape))}


def _reveals_nothing(evidence: Figure) -> bool:
    return any(word in evidence.name for word in _REVEALING_NOTHING)
