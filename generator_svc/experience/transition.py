"""Transitions from a parent to its judged child, and whether they are worth a lesson.

The confidence intervals of the medians separate gains from noise. `lesson_writer` words the
lessons.
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kernel_foundry.domain.archive import Elite
from kernel_foundry.domain.candidate import Candidate
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.request import ProposalRequest
from kernel_foundry.domain.speedup import TimeBounds, weighted_mean

_LEAST_GAIN: Final = math.log(1.05)
"""Least gain that teaches something: smaller ones do not carry over to other kernels."""

_LARGE_LOSS: Final = math.log(1.5)


class TransitionKind(StrEnum):
    """The lesson of a transition, if any."""

    NOTHING = "nothing"
    REPAIRED = "repaired"
    """The parent failed, the child passed."""
    FASTER = "faster"
    """The child is faster, clearly beyond the noise."""
    REFUTED = "refuted"
    """A lesson was shown or a direction given, the child followed it, and is much slower."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedTransition:
    """A proposal with a parent, and its verdict."""

    run: str
    request: ProposalRequest
    """The request, whose selection has the parent."""
    child: Candidate
    evaluation: Evaluation
    """The child's verdict."""
    shown: tuple[int, ...] = ()
    """Ids of the lessons in the prompt."""

    @property
    def parent(self) -> Elite | None:
        """The child's parent; None for a seed."""
        return self.request.selection.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSpeedup:
    """Natural logarithm of parent's over child's time, weighted mean over the timed workloads."""

    mean: float
    lower: float
    upper: float
    """Bounds from the far ends of both medians' 95 % intervals."""


def kind_of(transition: ObservedTransition) -> TransitionKind:
    """Return the kind of a transition."""
    parent, child = transition.parent, transition.evaluation
    if parent is None or not child.passed:
        return TransitionKind.NOTHING
    if not parent.evaluation.passed:
        return TransitionKind.REPAIRED
    change = log_speedup(parent.evaluation, child)
    if change is None:
        return TransitionKind.NOTHING
    if change.lower > 0.0 and change.mean >= _LEAST_GAIN:
        return TransitionKind.FASTER
    is_large_loss = change.upper < 0.0 and change.mean <= -_LARGE_LOSS
    if is_large_loss and _was_followed(transition):
        return TransitionKind.REFUTED
    return TransitionKind.NOTHING


def log_speedup(parent: Evaluation, child: Evaluation) -> LogSpeedup | None:
    """Return the child's speed-up over the parent; None when they cannot be compared."""
    before, after = _timings(parent), _timings(child)
    same_kind = parent.device.partition(":")[0] == child.device.partition(":")[0]
    if not before or before.keys() != after.keys() or not same_kind or parent.task != child.task:
        return None
    pairs = [(before[name], after[name]) for name in before]
    weight_of = {w.workload: w.weight for w in child.workloads}
    weights = [weight_of[name] for name in before]
    return LogSpeedup(
        mean=math.log(weighted_mean([b[1] / a[1] for b, a in pairs], weights)),
        lower=math.log(weighted_mean([b[0] / a[2] for b, a in pairs], weights)),
        upper=math.log(weighted_mean([b[2] / a[0] for b, a in pairs], weights)),
    )


def moved_as_asked(transition: ObservedTransition) -> bool:
    """Return whether the child is nearer to the target than its parent; False without a target."""
    parent, target = transition.parent, transition.request.selection.target
    reached = transition.evaluation.measures
    if parent is None or reached is None or target is None:
        return False
    return math.dist(reached.cell, target.cell) < math.dist(parent.measures.cell, target.cell)


def _was_followed(transition: ObservedTransition) -> bool:
    """Return whether the child followed advice.

    With a target other than the parent's cell it has to be nearer to it; without one, a lesson must
    have been shown and the child must have another cell.
    """
    parent, target = transition.parent, transition.request.selection.target
    reached = transition.evaluation.measures
    if parent is None or reached is None:
        return False
    if target is not None and target != parent.measures:
        return moved_as_asked(transition)
    return bool(transition.shown) and reached != parent.measures


def _timings(evaluation: Evaluation) -> dict[str, TimeBounds]:
    return {
        w.workload: w.call_bounds_ns
        for w in evaluation.workloads
        if w.call_bounds_ns is not None and not w.held_out
    }
