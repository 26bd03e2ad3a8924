"""The inputs of an evaluation: the judge draws them once for each workload, in the background.

Unusual values are drawn in `value_ranges.py`.
"""

import secrets
from concurrent.futures import Future

from evaluator_svc.messages.draw import SEED_COUNT
from evaluator_svc.pipeline.correctness.generated_sizes import has_one_seed
from evaluator_svc.pipeline.evaluation_context import EvaluationContext
from evaluator_svc.pipeline.memory.evaluation_memory import EvaluationMemory
from evaluator_svc.pipeline.runner_calls import DrawnInputs
from kernel_foundry.domain.admission import WorkloadAdmission


class EvaluationDraws:
    """The draws of one evaluation.

    Args:
        context: The evaluation.
        memory: Says which workloads are judged seed by seed; taken before the first draw.
    """

    def __init__(self, context: EvaluationContext, memory: EvaluationMemory) -> None:
        self._context = context
        self._memory = memory
        self._drawn: dict[str, Future[DrawnInputs]] = {}

    @property
    def started(self) -> tuple[Future[DrawnInputs], ...]:
        """All draws so far, to be released once the runner is dead."""
        return tuple(self._drawn.values())

    def start(self, workload: WorkloadAdmission) -> Future[DrawnInputs]:
        """Let the judge draw a workload's inputs, unless it does or did already."""
        name = workload.workload
        if name not in self._drawn:
            self._drawn[name] = self._context.site.helpers.submit(self._draw, workload)
        return self._drawn[name]

    def of(self, workload: WorkloadAdmission) -> DrawnInputs:
        """Return a workload's inputs; waits until they are drawn."""
        return self.start(workload).result()

    def _draw(self, workload: WorkloadAdmission) -> DrawnInputs:
        context, name = self._context, workload.workload
        given = {s.workload: s.seeds for s in context.request.seeds}
        # Else secret and fresh for every evaluation: nothing can be prepared for them.
        seeds = given.get(name) or tuple(secrets.randbits(31) for _ in range(SEED_COUNT))
        context.draft.set_seeds(name, seeds)
        is_alone = has_one_seed(workload)
        own = context.request.task.tolerance_of(name, context.admission.tolerance)
        draw, descriptors = context.judge.draw(
            context.request.task,
            name,
            own.times(workload.tolerance_factor),
            seeds[:1] if is_alone else seeds,
            is_lean=is_alone or name in self._memory.plan.lean,
        )
        return DrawnInputs(draw=draw, descriptors=descriptors)
