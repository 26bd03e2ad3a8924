"""Transitions: from a parent to its judged child, and whether that is worth a lesson.

What is a gain and what is noise, the confidence intervals of the medians say. The wording of
lessons is made by `lesson_writer`.
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
"""A certain gain of less teaches nothing that carries over to other kernels."""

_LARGE_LOSS: Final = math.log(1.5)


class TransitionKind(StrEnum):
    """What a transition says."""

    NOTHING = "nothing"
    REPAIRED = "repaired"
    """The parent failed, the child passed."""
    FASTER = "faster"
    """Clearly beyond the noise."""
    REFUTED = "refuted"
    """A lesson was shown or a direction given, it was followed, and cost much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedTransition:
    """A proposal with a parent, and what became of it."""

    run: str
    request: ProposalRequest
    """What was asked; its selection has the parent."""
    child: Candidate
    evaluation: Evaluation
    """The child's."""
    shown: tuple[int, ...] = ()
    """Ids of the lessons in the prompt."""

    @property
    def parent(self) -> Elite | None:
        """What the child was made from; None for a seed."""
        return self.request.selection.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSpeedup:
    """Natural logarithm of parent's over child's time, mean over the timed workloads by weight."""

    mean: float
    lower: float
    upper: float
    """From the far ends of both medians' 95 % intervals."""


def kind_of(transition: ObservedTransition) -> TransitionKind:
    """Return what a transition says."""
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
    """Return whether the child came nearer to the target; False when it stands where it stood."""
    parent, target = transition.parent, transition.request.selection.target
    reached = transition.evaluation.measures
    if parent is None or reached is None or target is None:
        return False
    return math.dist(reached.cell, target.cell) < math.dist(parent.measures.cell, target.cell)


def _was_followed(transition: ObservedTransition) -> bool:
    """Return whether advice was given and the child moved: towards the target if there is one."""
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
