"""The stages of an evaluation in order; the first failure ends it.

1. parse, policy, build: `built_candidate.py`; the judge draws inputs at the same time: `draws.py`.
2. bind, behaviour: `loaded_candidate.py`.
3. correctness, precision, schedule: `correctness_stage.py`.
4. value ranges that bind: `value_ranges.py`.
5. timing with data flow, arithmetic and baselines: `timing_stage.py`.
6. profile: `profile_stage.py`, sanitizers: `tools.py`.
7. correctness on sizes that the task does not name (`generated_sizes.py`), value ranges that do not
   bind.
8. diagnosis.

5 and 6 have the device for themselves; the others share it with other evaluations. A suspect goes
through all of them twice, and `trust.py` decides what follows.
"""

from concurrent.futures import Future
from contextlib import ExitStack

from evaluator_svc import diagnosis
from evaluator_svc.devices.site import DeviceSite
from evaluator_svc.messages.locked import CandidateFailure, WorkloadNames
from evaluator_svc.pipeline.build.built_candidate import BuiltCandidate, read_and_build
from evaluator_svc.pipeline.build.loaded_candidate import LoadedCandidate, load_candidate
from evaluator_svc.pipeline.correctness.correctness_stage import CorrectnessStage
from evaluator_svc.pipeline.correctness.generated_sizes import GeneratedTrials
from evaluator_svc.pipeline.correctness.value_ranges import RangeTrials
from evaluator_svc.pipeline.draws import EvaluationDraws
from evaluator_svc.pipeline.evaluation_context import EvaluationContext
from evaluator_svc.pipeline.evaluation_draft import draft_of, fastest_baselines_ns
from evaluator_svc.pipeline.facts import verdict_facts
from evaluator_svc.pipeline.memory.evaluation_memory import EvaluationMemory, MemoryWish
from evaluator_svc.pipeline.profile.profile_stage import ProfileStage
from evaluator_svc.pipeline.runner_calls import DrawnInputs, release_all
from evaluator_svc.pipeline.timing.timing_stage import TimingStage
from evaluator_svc.pipeline.tools import sanitized
from evaluator_svc.processes.process import ChildProcess
from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.device import Peaks
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.request import EvaluationRequest


class CandidateEvaluation:
    """One candidate on its way through the stages; used once.

    Args:
        site: The device.
        request: What is asked.
        admission: The task as the device sees it; admitted.
        peaks: The device's measured limits.
        wish: What is known of the memory that it takes.
    """

    def __init__(
        self,
        site: DeviceSite,
        request: EvaluationRequest,
        admission: Admission,
        peaks: Peaks,
        wish: MemoryWish,
    ) -> None:
        self._site = site
        self._request = request
        self._draft = draft_of(request, site.spec.id, fastest_baselines_ns(admission))
        self._context = EvaluationContext(
            site=site,
            judge=site.judge,
            request=request,
            admission=admission.without_generated,
            peaks=peaks,
            draft=self._draft,
        )
        self._workloads = self._context.admission.workloads
        self._generated = tuple(w for w in admission.workloads if w.is_generated)
        self._memory = EvaluationMemory(site, admission, wish)
        self._draws = EvaluationDraws(self._context, self._memory)
        self._ranges = RangeTrials(self._context, admission, self._memory)
        self._runner: ChildProcess | None = None

    def evaluate(self) -> Evaluation:
        """Return the verdict; raises only for failures of our own.

        Raises:
            DeviceMemoryError: the device has too little memory.
            MoreMemoryError: the plan's own memory is not free at present.
        """
        try:
            with ExitStack() as processes:
                failure = self._first_failure(processes)
            return self._draft.passed() if failure is None else self._draft.failed(failure)
        finally:
            drawn = self._all_drawn()
            judge = self._context.judge
            self._site.helpers.submit(release_all, judge, drawn, self._runner, self._memory)

    def _first_failure(self, processes: ExitStack) -> CandidateFailure | None:
        """Go through the stages in order; return the failure of the first that fails."""
        with ExitStack() as held:
            built = self._build(held)
            if isinstance(built, CandidateFailure):
                return built
            candidate = self._load(processes, built)
            self._add_evidence()
            if isinstance(candidate, CandidateFailure):
                return candidate
            correctness = CorrectnessStage(self._context, self._draws, candidate)
            failure = self._find_wrong(correctness, candidate.runner)
        if failure is not None:
            return failure
        timing = TimingStage(
            self._context,
            self._draws,
            candidate,
            ranges=self._ranges,
            memory_plan=self._memory.plan,
            assess_precision=correctness.assess_precision,
            stop_above_ns=self._request.stop_above_ns,
        )
        with self._site.lock.exclusive():
            failure = timing.run() or self._use_tools(candidate)
        if failure is not None:
            return failure
        with self._site.lock.shared():
            failure = self._try_elsewhere(correctness, candidate)
        if failure is None:
            self._diagnose(candidate)
            self._add_memory_facts(timing.pool_bytes)
        return failure

    def _build(self, held: ExitStack) -> BuiltCandidate | CandidateFailure:
        """Read and build the candidate; take memory and lock, and let the judge draw.

        Memory before the lock: whoever waits for memory must not hold the lock.
        """
        site = self._site
        if site.shares_cores:
            self._memory.take()
            held.enter_context(site.lock.shared())
            # The judge draws while the builder builds; it may still be importing torch.
            self._draws.start(self._workloads[0])
        with site.builders.taken() as builder:
            built = read_and_build(builder, site, self._request, self._names, self._draft)
        if isinstance(built, CandidateFailure):
            return built
        if not site.shares_cores:
            self._memory.take()
            # A draw runs on the device, and would disturb whoever takes times there.
            held.enter_context(site.lock.shared())
            self._draws.start(self._workloads[0])
        return built

    def _load(
        self, processes: ExitStack, built: BuiltCandidate
    ) -> LoadedCandidate | CandidateFailure:
        uses_library = built.parsed.uses_library
        runners = self._site.library_runners if uses_library else self._site.runners
        self._runner = processes.enter_context(runners.taken())
        candidate = load_candidate(self._context, self._request, self._runner, built, self._names)
        if isinstance(candidate, CandidateFailure):
            return candidate
        return self._memory.reserve(candidate.bound.values()) or candidate

    def _find_wrong(
        self, correctness: CorrectnessStage, runner: ChildProcess
    ) -> CandidateFailure | None:
        failure = correctness.verify(self._workloads)
        if failure is not None:
            return failure
        failure = (
            correctness.audit_precision(self._workloads)
            or correctness.try_schedule(self._workloads)
            or correctness.try_one_by_one(self._workloads)
            or self._ranges.run(runner, correctness.assess_precision, binding=True)
        )
        correctness.name_arithmetic()
        return failure

    def _use_tools(self, candidate: LoadedCandidate) -> CandidateFailure | None:
        """Profile and sanitize, as asked for.

        The device is held alone: the tools' figures would suffer from others, and theirs from them.
        """
        ProfileStage(self._context, self._draws, candidate, self._request).run()
        if not self._request.sanitize:
            return None
        smallest = min(self._workloads, key=lambda w: w.minimal_bytes)
        with self._draft.stage("tools"):
            sanitizers = sanitized(candidate.rerun, self._draws.of(smallest).draw)
        self._draft.add_checks(sanitizers.checks)
        return sanitizers.failure

    def _try_elsewhere(
        self, correctness: CorrectnessStage, candidate: LoadedCandidate
    ) -> CandidateFailure | None:
        """Try inputs that a candidate may decline without a fault."""
        untried = self._context.admission.untried
        trials = GeneratedTrials(self._generated, self._draft, candidate.bound, untried)
        failure = correctness.try_generated(trials)
        if failure is not None or trials.is_runner_lost:
            return failure
        return self._ranges.run(candidate.runner, correctness.assess_precision, binding=False)

    def _diagnose(self, candidate: LoadedCandidate) -> None:
        report = self._draft.compile
        with self._draft.stage("diagnosis"):
            for workload in self._workloads:
                if not workload.held_out:
                    findings = diagnosis.performance_findings(
                        self._draft.workload(workload.workload),
                        workload,
                        self._site.spec,
                        self._context.peaks,
                        kernels=candidate.kernel_facts,
                        launches=candidate.launch_facts(workload.workload),
                        resources=report.kernels if report else (),
                    )
                    self._draft.add_findings(findings)

    @property
    def _names(self) -> tuple[WorkloadNames, ...]:
        return tuple(
            WorkloadNames(
                workload=w.workload,
                tensors=w.tensors,
                scalars=w.scalars,
                is_optional=w.is_generated,
            )
            for w in (*self._workloads, *self._generated)
        )

    def _add_evidence(self) -> None:
        judge_facts = self._context.judge.facts()
        self._draft.add_facts(verdict_facts(self._site, self._request, judge_facts))

    def _add_memory_facts(self, pool_bytes: int) -> None:
        draws = [future.result().draw.draw for future in self._all_drawn()]
        facts = self._memory.facts(self._context.judge, draws, pool_bytes=pool_bytes)
        self._draft.add_facts(facts)

    def _all_drawn(self) -> tuple[Future[DrawnInputs], ...]:
        return (*self._draws.started, *self._ranges.drawn)
