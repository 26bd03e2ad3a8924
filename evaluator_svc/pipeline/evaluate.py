"""The stages of an evaluation in order; the first failure ends it.

1. parse, policy, build: `built_candidate.py`; the judge draws inputs (`draws.py`), on a CPU during
   the build, on a GPU after it.
2. bind, behaviour: `loaded_candidate.py`.
3. correctness, precision, schedule: `correctness_stage.py`.
4. value ranges that can fail a candidate: `value_ranges.py`.
5. timing with data flow, arithmetic and baselines: `timing_stage.py`.
6. profile: `profile_stage.py`, sanitizers: `tools.py`.
7. correctness on sizes that the task does not name (`generated_sizes.py`), value ranges that cannot
   fail a candidate.
8. diagnosis.

5 and 6 have the device to themselves. 2 to 4, 7 and the judge's draw share it with other
evaluations, and so does the build on a CPU. A suspect candidate goes through all stages twice, and
`trust.py` decides what follows.
"""

from contextlib import ExitStack

from evaluator_svc import diagnosis
from evaluator_svc.devices.site import DeviceSite
from evaluator_svc.messages.locked import CandidateFailure, WorkloadNames
from evaluator_svc.pipeline.build.built_candidate import BuiltCandidate, read_and_build
from evaluator_svc.pipeline.build.loaded_candidate import LoadedCandidate, load_candidate
from evaluator_svc.pipeline.correctness.correctness_stage import CorrectnessStage
from evaluator_svc.pipeline.evaluation_draft import draft_of, fastest_baselines_ns
from evaluator_svc.pipeline.evaluation_parts import EvaluationParts
from evaluator_svc.pipeline.memory.evaluation_memory import MemoryWish
from evaluator_svc.pipeline.profile.profile_stage import ProfileStage
from evaluator_svc.pipeline.timing.timing_stage import TimingStage
from evaluator_svc.pipeline.tools import SANITIZED_BYTES, sanitized
from evaluator_svc.processes.process import ChildProcess
from evaluator_svc.tools.profiler import NCU
from kernel_foundry.domain.admission import Admission, WorkloadAdmission
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
        self._parts = EvaluationParts(site, request, admission, peaks, wish, self._draft)
        self._context, self._workloads = self._parts.context, self._parts.workloads
        self._memory, self._draws = self._parts.memory, self._parts.draws
        self._ranges = self._parts.ranges
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
            self._parts.release(self._runner)

    def _first_failure(self, processes: ExitStack) -> CandidateFailure | None:
        with ExitStack() as held:
            built = self._build(held)
            if isinstance(built, CandidateFailure):
                return built
            candidate = self._load(processes, built)
            self._parts.add_facts()
            if isinstance(candidate, CandidateFailure):
                return candidate
            correctness = CorrectnessStage(self._context, self._draws, candidate)
            if not self._request.sanitize:
                # What may win, as at promotions, is tried on everything.
                self._ranges.spare(candidate.bound)
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
        # Here nobody's times wait for it: the next candidate is yet to be built.
        self._site.refill()
        if failure is not None:
            return failure
        with self._site.lock.shared():
            failure = self._parts.try_elsewhere(correctness, candidate.runner, candidate.bound)
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
            or self._ranges.run(runner, correctness, binding=True)
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
        with self._draft.stage("tools"):
            draw = self._draws.of(self._sanitized_workload(candidate)).draw
            sanitizers = sanitized(candidate.rerun, draw)
        self._draft.add_checks(sanitizers.checks)
        return sanitizers.failure

    def _sanitized_workload(self, candidate: LoadedCandidate) -> WorkloadAdmission:
        """The largest on which sanitizers end in time, also one that the task does not name."""
        bound = (w for w in self._parts.generated if w.workload in candidate.bound)
        order = sorted((*self._workloads, *bound), key=lambda w: w.minimal_bytes)
        small = [w for w in order if w.minimal_bytes <= SANITIZED_BYTES]
        return (small or order[:1])[-1]

    def _diagnose(self, candidate: LoadedCandidate) -> None:
        report, profile = self._draft.compile, self._draft.profile
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
                        has_counters=profile is not None and profile.tool == NCU,
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
                is_spare=w.is_spare,
            )
            for w in (*self._workloads, *self._parts.generated)
        )

    def _add_memory_facts(self, pool_bytes: int) -> None:
        draws = [future.result().draw.draw for future in self._parts.drawn]
        facts = self._memory.facts(self._context.judge, draws, pool_bytes=pool_bytes)
        self._draft.add_facts(facts)
