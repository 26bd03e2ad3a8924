"""The parts of an evaluation that candidates and foreign kernels share: inputs, memory, trials."""

from collections.abc import Mapping
from concurrent.futures import Future
from functools import partial

from evaluator_svc.devices.site import DeviceSite
from evaluator_svc.messages.locked import CandidateFailure
from evaluator_svc.messages.runner import BoundWorkload
from evaluator_svc.pipeline.correctness.correctness_stage import CorrectnessStage
from evaluator_svc.pipeline.correctness.generated_sizes import GeneratedTrials
from evaluator_svc.pipeline.correctness.value_ranges import RangeTrials
from evaluator_svc.pipeline.draws import EvaluationDraws
from evaluator_svc.pipeline.evaluation_context import EvaluationContext, JudgedRequest
from evaluator_svc.pipeline.evaluation_draft import EvaluationDraft
from evaluator_svc.pipeline.facts import verdict_facts
from evaluator_svc.pipeline.memory.evaluation_memory import EvaluationMemory, MemoryWish
from evaluator_svc.pipeline.runner_calls import DrawnInputs, release_all
from evaluator_svc.processes.process import ChildProcess
from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.device import Peaks


class EvaluationParts:
    """The parts of one evaluation; used once.

    Args:
        site: The device.
        request: What is asked.
        admission: The task as the device sees it; admitted.
        peaks: The device's measured limits.
        wish: What is known of the memory that it takes.
        draft: The verdict as yet.
    """

    def __init__(
        self,
        site: DeviceSite,
        request: JudgedRequest,
        admission: Admission,
        peaks: Peaks,
        wish: MemoryWish,
        draft: EvaluationDraft,
    ) -> None:
        self.context = EvaluationContext(
            site=site,
            judge=site.judge,
            request=request,
            admission=admission.without_generated,
            peaks=peaks,
            draft=draft,
        )
        self.workloads = self.context.admission.workloads
        self.generated = tuple(w for w in admission.workloads if w.is_generated)
        self.memory = EvaluationMemory(site, admission, wish)
        self.draws = EvaluationDraws(self.context, self.memory)
        self.ranges = RangeTrials(self.context, admission, self.memory)

    @property
    def drawn(self) -> tuple[Future[DrawnInputs], ...]:
        """All inputs that were asked of the judge so far."""
        return (*self.draws.started, *self.ranges.drawn)

    def add_facts(self) -> None:
        """Say in the draft on what the verdict was reached."""
        context = self.context
        facts = verdict_facts(context.site, context.request, context.judge.facts())
        context.draft.add_facts(facts)

    def try_elsewhere(
        self,
        correctness: CorrectnessStage,
        runner: ChildProcess,
        bound: Mapping[str, BoundWorkload],
    ) -> CandidateFailure | None:
        """Try inputs that a candidate may decline without a fault."""
        untried = self.context.admission.untried
        trials = GeneratedTrials(self.generated, self.context.draft, bound, untried, self.workloads)
        failure = correctness.try_generated(
            trials, partial(self.ranges.run_generated, runner, correctness)
        )
        if failure is not None or trials.is_runner_lost:
            return failure
        return self.ranges.run(runner, correctness, binding=False)

    def release(self, process: ChildProcess | None) -> None:
        """Give inputs and memory back in the background, once `process` has ended."""
        helpers, judge = self.context.site.helpers, self.context.judge
        helpers.submit(release_all, judge, self.drawn, process, self.memory)
