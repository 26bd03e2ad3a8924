"""Candidates and verdicts to put into archives."""

import dataclasses

from kernel_foundry.domain.candidate import Candidate, KernelSource, Operator
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.measures import DIMENSIONS, Measures
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.task import Task
from kernel_foundry.testing.evaluator import FakeEvaluator


def candidate_of(label: str, *parents: Candidate) -> Candidate:
    source = KernelSource(language=Language.SYCL, device_code=f"// {label}", plan="pass")
    return Candidate(
        source=source,
        parents=tuple(parent.digest for parent in parents),
        operator=Operator.MUTATE if parents else Operator.SEED,
    )


async def verdict_on(
    task: Task,
    candidate: Candidate,
    *,
    fitness: float = 0.5,
    cell: tuple[int, int, int] = (0, 0, 0),
) -> Evaluation:
    """Return a PASSED evaluation; the fake's verdicts are as whole as real ones."""
    request = EvaluationRequest(task=task, device="", source=candidate.source)
    evaluation = await FakeEvaluator().evaluate(request)
    return dataclasses.replace(
        evaluation,
        fitness=fitness,
        optimistic_fitness=fitness,
        measures=Measures(**dict(zip(DIMENSIONS, cell, strict=True))),
    )
