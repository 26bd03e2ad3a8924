"""Collects the results of a candidate's stages; becomes one `Evaluation` at the end."""

import dataclasses
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from evaluator_svc.diagnosis.lanes_apart import lanes_apart
from evaluator_svc.messages.locked import CandidateFailure
from evaluator_svc.policy.number_formats import NARROW_FLOAT
from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.attestation import Attestation, WorkloadSeeds
from kernel_foundry.domain.check import Check, CheckKind, CheckResult, Trust
from kernel_foundry.domain.evaluation import (
    CompileReport,
    Evaluation,
    EvaluationOutcome,
    Fact,
    PrecisionAudit,
    Setting,
    StageTime,
    WorkloadResult,
)
from kernel_foundry.domain.finding import Finding, errors_first
from kernel_foundry.domain.fitness import fitness_bounds
from kernel_foundry.domain.launch_facts import LaunchFacts
from kernel_foundry.domain.measures import Measures
from kernel_foundry.domain.profile import Profile
from kernel_foundry.domain.request import EvaluationRequest, Yardstick

_MAY_HAVE_TIMING = (
    EvaluationOutcome.PASSED,
    EvaluationOutcome.REJECTED,
    EvaluationOutcome.WRONG_RESULT,
)


_NO_DOUBT = {CheckResult.PASSED, CheckResult.SKIPPED}


class EvaluationDraft:
    """The evaluation in progress.

    Args:
        task: Digest of the task.
        candidate: Digest of the candidate's source.
        device: Id of the device it runs on.
        baselines_ns: The fastest baseline of each timed workload that this evaluator measured.
        yardsticks: Times that the caller gave in place of `baselines_ns`.
        seeds_given: Whether inputs are drawn from seeds that the caller named.
        configuration: TUNE values that differ from the defaults.
        trust: Trust of the verdict if nothing suspicious is found.
    """

    def __init__(
        self,
        *,
        task: str,
        candidate: str,
        device: str,
        baselines_ns: Mapping[str, float],
        yardsticks: tuple[Yardstick, ...] = (),
        seeds_given: bool = False,
        configuration: tuple[Setting, ...] = (),
        trust: Trust = Trust.FULL,
    ) -> None:
        self._task = task
        self._seeds: dict[str, tuple[int, ...]] = {}
        self._seeds_given = seeds_given
        self._trust = trust
        self._device = device
        given = {y.workload: y.time_ns for y in yardsticks if y.workload in baselines_ns}
        self._yardsticks_ns = {**baselines_ns, **given}
        self._given = {name for name, time_ns in given.items() if time_ns != baselines_ns[name]}
        self._candidate = candidate
        self._configuration = configuration
        self._stages: dict[str, float] = {}
        self._workloads: dict[str, WorkloadResult] = {}
        self._findings: list[Finding] = []
        self._facts: list[Fact] = []
        self._checks: list[Check] = []
        self.compile: CompileReport | None = None
        self.measures: Measures | None = None
        self.launches: LaunchFacts | None = None
        self.arithmetic = ""
        self.profile: Profile | None = None

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the wall time of the block to a stage."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.add_stage_time(name, 1e3 * (time.perf_counter() - started))

    def add_stage_time(self, name: str, wall_ms: float) -> None:
        """Add wall time to a stage."""
        self._stages[name] = self._stages.get(name, 0.0) + wall_ms

    def set_configuration(self, configuration: tuple[Setting, ...]) -> None:
        """Replace the configuration by one that has a value for every TUNE name."""
        self._configuration = configuration

    def workload(self, name: str) -> WorkloadResult:
        """Return the results on a workload so far."""
        return self._workloads[name]

    def set_workload(self, result: WorkloadResult) -> None:
        """Replace what is known of a workload."""
        self._workloads[result.workload] = result

    def keep_precision(self, workload: str, audit: PrecisionAudit) -> None:
        """Keep an audit if it is the worst so far of its workload."""
        result = self._workloads[workload]
        known = result.precision
        if result.correctness is None or (
            known is not None and known.effective_bits <= audit.effective_bits
        ):
            return
        correctness = dataclasses.replace(result.correctness, precision=audit)
        self.set_workload(dataclasses.replace(result, correctness=correctness))

    def add_findings(self, findings: tuple[Finding, ...]) -> None:
        """Add findings; an equal one is kept once."""
        self._findings += [f for f in findings if f not in self._findings]

    def add_fact(self, name: str, value: str) -> None:
        """Add a line of evidence."""
        self._facts.append(Fact(name=name, value=value))

    def set_fact(self, name: str, value: str) -> None:
        """Add a line of evidence in place of an earlier one of its name."""
        self._facts = [fact for fact in self._facts if fact.name != name]
        self.add_fact(name, value)

    def add_facts(self, facts: tuple[Fact, ...]) -> None:
        """Add lines of evidence."""
        self._facts += facts

    def set_seeds(self, workload: str, seeds: tuple[int, ...]) -> None:
        """Keep the secret seeds of a workload's inputs; published once the evaluation is over."""
        self._seeds[workload] = seeds

    def seeds(self, workload: str) -> tuple[int, ...]:
        """Return the seeds of a workload's inputs."""
        return self._seeds[workload]

    def add_checks(self, checks: tuple[Check, ...]) -> None:
        """Add checks in the order in which they were made."""
        self._checks += checks

    def has_silent_check(self, workload: str) -> bool:
        """Return whether the task's check told nothing of a workload's outputs."""
        return any(
            check.kind is CheckKind.TASK_CHECK and check.result is CheckResult.SKIPPED
            for check in self._checks
            if check.workload == workload
        )

    def set_checks(self, checks: tuple[Check, ...]) -> None:
        """Put checks in the place of earlier ones of their kinds."""
        kinds = {check.kind for check in checks}
        self._checks = [check for check in self._checks if check.kind not in kinds]
        self.add_checks(checks)

    def failed(self, failure: CandidateFailure) -> Evaluation:
        """Return the evaluation of a candidate that failed."""
        self.add_findings(failure.findings)
        if failure.outcome is EvaluationOutcome.TIMEOUT:
            self.add_findings(tuple(lanes_apart(self._findings)))
        return self._evaluation(failure.outcome)

    def passed(self) -> Evaluation:
        """Return the evaluation of a candidate that passed every stage."""
        return self._evaluation(EvaluationOutcome.PASSED)

    def built(self) -> Evaluation:
        """Return the evaluation of a candidate that the request only had built."""
        return self._evaluation(EvaluationOutcome.BUILT)

    def _evaluation(self, outcome: EvaluationOutcome) -> Evaluation:
        results = tuple(
            dataclasses.replace(
                r,
                yardstick_ns=self._yardsticks_ns.get(r.workload),
                yardstick_given=r.workload in self._given,
            )
            for r in self._workloads.values()
        )
        if outcome not in _MAY_HAVE_TIMING:
            results = tuple(dataclasses.replace(r, timing=None, warm_timing=None) for r in results)
        evaluation = Evaluation(
            candidate=self._candidate,
            task=self._task,
            device=self._device,
            outcome=outcome,
            configuration=self._configuration,
            compile=self.compile,
            workloads=results,
            measures=self.measures,
            launches=self.launches,
            findings=errors_first(self._told_findings()),
            stages=tuple(StageTime(stage=n, wall_ms=ms) for n, ms in self._stages.items()),
            evidence=tuple(self._facts),
            checks=tuple(self._checks),
            arithmetic=self.arithmetic,
            profile=self.profile if outcome is EvaluationOutcome.PASSED else None,
            trust=self._trust,
            attestation=self._draft() if outcome is EvaluationOutcome.PASSED else None,
        )
        certain, best = fitness_bounds(evaluation, self._yardsticks_ns)
        return dataclasses.replace(evaluation, fitness=certain, optimistic_fitness=best)

    def _told_findings(self) -> list[Finding]:
        """Return the findings; formats are none once errors show that they are exact enough."""
        audits = {check.result for check in self._checks if check.kind is CheckKind.PRECISION}
        if CheckResult.PASSED not in audits or not audits <= _NO_DOUBT:
            return self._findings
        return [finding for finding in self._findings if finding.rule != NARROW_FLOAT]

    def _draft(self) -> Attestation:
        """Return the attestation before it is signed (see `evaluator_svc.signing`)."""
        seeds = tuple(
            WorkloadSeeds(workload=name, seeds=self._seeds[name])
            for name in self._workloads
            if name in self._seeds
        )
        return Attestation(
            seeds=seeds,
            seeds_given=self._seeds_given,
            signed_unix_s=0.0,
            digest="",
            public_key="",
            signature="",
        )


def draft_of(
    request: EvaluationRequest, device: str, baselines_ns: Mapping[str, float]
) -> EvaluationDraft:
    """Return an empty draft for a request with a launch plan; foreign kernels have their own."""
    return EvaluationDraft(
        task=request.task.digest,
        candidate=request.source.digest,
        device=device,
        baselines_ns=baselines_ns,
        yardsticks=request.yardsticks,
        seeds_given=bool(request.seeds),
        configuration=request.configuration,
    )


def fastest_baselines_ns(admission: Admission) -> dict[str, float]:
    """Return the median of the fastest baseline of each timed workload."""
    return {
        w.workload: min(b.timing.median_ns for b in w.baselines)
        for w in admission.workloads
        if w.baselines
    }
