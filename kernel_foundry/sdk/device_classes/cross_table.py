"""The cross table: each class's winner, judged on each other class in its language."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from kernel_foundry.domain.archive import Elite
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.request import EvaluationLimits, EvaluationRequest
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import KernelFoundryError
from kernel_foundry.ports import Evaluator
from kernel_foundry.sdk.device_classes.class_choice import ClassChoice


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossVerdict:
    """The winner of one class on a class, its own included."""

    winner_of: str
    """Label of the class whose winner it is."""
    on: str
    """Label of the class that it was judged on; its speed-up is over the baselines there."""
    evaluation: Evaluation | None
    """None where it could not be judged."""
    reason: str = ""
    """Why it could not."""

    @property
    def speedup(self) -> float | None:
        """Over the fastest baseline on the class; None if it did not pass there."""
        if self.evaluation is None or not self.evaluation.passed:
            return None
        return self.evaluation.speedup


async def cross_table(
    evaluator: Evaluator,
    task: Task,
    winners: Sequence[tuple[ClassChoice, Elite]],
    limits: EvaluationLimits,
) -> tuple[CrossVerdict, ...]:
    """Return every winner's verdict on every class in its language, its own as it is.

    Baselines are timed again beside each of them. One device of the class judges at a time.

    Args:
        evaluator: Has the classes.
        task: What the winners are for.
        winners: Of the classes that have one.
        limits: Deadlines of each evaluation.
    """
    return tuple(
        [
            await _verdict(evaluator, task, winner, place, limits)
            for winner in winners
            for place in winners
            if winner[0].language is place[0].language
        ]
    )


async def _verdict(
    evaluator: Evaluator,
    task: Task,
    winner: tuple[ClassChoice, Elite],
    place: tuple[ClassChoice, Elite],
    limits: EvaluationLimits,
) -> CrossVerdict:
    (own, elite), (other, known) = winner, place
    evaluation: Evaluation | None = None
    reason = ""
    if _is_same(elite, known):
        evaluation = known.evaluation
    else:
        request = EvaluationRequest(
            task=task,
            device=other.device,
            source=elite.candidate.source,
            configuration=elite.evaluation.configuration,
            limits=limits,
            fresh_baselines=True,
            request_id=uuid.uuid4().hex,
        )
        try:
            evaluation = await evaluator.evaluate(request)
        except KernelFoundryError as error:
            reason = error.message  # a cell without a figure; the winners stand
    return CrossVerdict(winner_of=own.label, on=other.label, evaluation=evaluation, reason=reason)


def _is_same(one: Elite, other: Elite) -> bool:
    return (one.candidate.digest, one.evaluation.configuration) == (
        other.candidate.digest,
        other.evaluation.configuration,
    )
