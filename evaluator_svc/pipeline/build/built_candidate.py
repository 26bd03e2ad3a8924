"""A candidate from source to object code: what evaluations and mere builds have in common."""

import dataclasses
import math
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Protocol

from evaluator_svc.behaviour import KernelFacts, PlanCounts, measures
from evaluator_svc.cache.object_cache import ObjectCache
from evaluator_svc.messages.builder import ReadCandidateReply, ReadCandidateRequest
from evaluator_svc.messages.locked import CandidateFailure, WorkloadNames
from evaluator_svc.messages.runner import BindReply, BindRequest, BoundWorkload
from evaluator_svc.pipeline.build.build import (
    BuildFailure,
    BuildResult,
    BuildSettings,
    build,
    is_refused,
    read_candidate,
)
from evaluator_svc.pipeline.build.inspect import inspect_units
from evaluator_svc.pipeline.build.listings import listings, object_codes
from evaluator_svc.pipeline.build.unordered_updates import update_findings
from evaluator_svc.pipeline.evaluation_draft import EvaluationDraft
from evaluator_svc.policy import ObjectFacts, Subject, narrow_findings, policy_checks
from evaluator_svc.policy.findings_by_size import fitting_sizes
from evaluator_svc.policy.number_formats import NARROW_FORMATS, TF32
from evaluator_svc.processes.ask_candidate import ask_candidate
from evaluator_svc.processes.candidate_inspectors import CandidateInspectors
from evaluator_svc.processes.process import ChildProcess
from evaluator_svc.processes.spare_pool import SparePool
from evaluator_svc.settings import EvaluatorSettings
from kernel_foundry.domain.admission import GraphNode, is_narrow
from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import Finding
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.launch_facts import LaunchFacts
from kernel_foundry.domain.measures import Measures
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.task import Task
from kernel_foundry.plan import allowed_library_ops

_NO_OPERATORS: Final = ("placeholder", "output", "get_attr")
"""Nodes of a reference's graph that compute nothing."""
_BIND_SECONDS: Final = 30.0
_READ: Final = (Subject.SOURCE, Subject.PLAN)
"""Subjects of the policy's rules that a builder checks."""


class BuildPlace(Protocol):
    """The part of a device site or a build site that a build needs."""

    spec: DeviceSpec
    compiler_version: str
    settings: EvaluatorSettings
    objects: ObjectCache
    builders: SparePool
    inspectors: SparePool

    def building(self) -> AbstractContextManager[None]:
        """Return the lock to hold during a build."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltCandidate:
    """A candidate that was read, built and inspected."""

    parsed: ReadCandidateReply
    built: BuildResult
    facts: ObjectFacts | None = None
    """Number formats of the object code; None: it was not inspected."""
    findings: tuple[Finding, ...] = ()
    """Findings of the rules in the object code."""


def read_and_build(
    builder: ChildProcess,
    place: BuildPlace,
    request: EvaluationRequest,
    names: tuple[WorkloadNames, ...],
    draft: EvaluationDraft,
) -> BuiltCandidate | CandidateFailure:
    """Take a candidate through parse, policy, build and inspection."""
    parsed = _read(builder, place, request, names, draft)
    if isinstance(parsed, CandidateFailure):
        return parsed
    settings = BuildSettings(
        device=place.spec,
        compiler_version=place.compiler_version,
        seconds=request.limits.build_seconds,
        memory_bytes=place.settings.builder_memory_bytes,
    )
    with draft.stage("build"):
        optional, spare = _optional(parsed, names)
        built = build(builder, parsed, place.objects, settings, optional=optional, spare=spare)
    draft.compile = built.report
    if isinstance(built, BuildFailure):
        return _with_faults_of_plan(builder, request.task, built.failure)
    if request.with_listings:
        draft.compile = dataclasses.replace(draft.compile, listings=listings(built))
    if request.with_objects:
        pairs = _taken(parsed, names)
        objects = object_codes(built, [unit for unit, _ in pairs], [taken for _, taken in pairs])
        draft.compile = dataclasses.replace(draft.compile, objects=objects)
    if is_null(place.spec):
        return BuiltCandidate(parsed=parsed, built=built)
    with draft.stage("policy"), CandidateInspectors(place.inspectors) as inspectors:
        language = request.source.language
        inspected = inspect_units(inspectors, built, parsed, language, place.objects)
        if isinstance(inspected, CandidateFailure):
            draft.add_checks(policy_checks(inspected.findings, language, Subject.OBJECT))
            return inspected
        draft.compile = dataclasses.replace(draft.compile, kernels=inspected.report.kernels)
        candidate = BuiltCandidate(parsed=parsed, built=inspected)
        return _assess_objects(candidate, request, names, draft)


def ask_to_bind(builder: ChildProcess, task: Task) -> BindReply | CandidateFailure:
    """Have a builder bind the plan that it has read."""
    return ask_candidate(
        builder,
        BindRequest(library_ops=allowed_library_ops(task, None)),
        BindReply,
        seconds=_BIND_SECONDS,
        doing="binding the plan",
    )


def _with_faults_of_plan(
    builder: ChildProcess, task: Task, failure: CandidateFailure
) -> CandidateFailure:
    """Add what is wrong with the plan to what the compiler said: both are mended at once."""
    if failure.outcome is not EvaluationOutcome.COMPILE_ERROR:
        return failure  # there may be no builder any more
    bound = ask_to_bind(builder, task)
    if not isinstance(bound, CandidateFailure) or bound.outcome is not EvaluationOutcome.PLAN_ERROR:
        return failure
    return dataclasses.replace(failure, findings=(*failure.findings, *bound.findings))


def _taken(
    parsed: ReadCandidateReply, names: Sequence[WorkloadNames]
) -> list[tuple[int, WorkloadNames]]:
    """Return the workloads that the plan takes, each behind the index of its unit."""
    pairs = zip(parsed.unit_of_workload, names, strict=True)
    return [
        (unit, workload) for unit, workload in pairs if workload.workload not in parsed.left_out
    ]


def _optional(
    parsed: ReadCandidateReply, names: Sequence[WorkloadNames]
) -> tuple[frozenset[int], tuple[int, ...]]:
    """Return the units that only optional workloads need, and those that only spare ones do."""
    pairs = _taken(parsed, names)
    needed = {unit for unit, workload in pairs if not workload.is_optional}
    wanted = {unit for unit, workload in pairs if not workload.is_spare}
    optional = frozenset(unit for unit, _ in pairs) - needed
    return optional, tuple(sorted(optional - wanted))


def _assess_objects(
    candidate: BuiltCandidate,
    request: EvaluationRequest,
    names: Sequence[WorkloadNames],
    draft: EvaluationDraft,
) -> BuiltCandidate | CandidateFailure:
    """Hold what was built, or found in the cache, against the policy's rules."""
    facts = ObjectFacts.of_all([report.numbers for report in candidate.built.reports])
    largest = max((math.prod(t.shape) for w in names for t in w.tensors), default=0)
    findings = (
        *fitting_sizes(candidate.built.findings, largest),
        *narrow_findings(facts.formats, _allowed_formats(request.task, names)),
    )
    draft.add_checks(policy_checks(findings, request.source.language, Subject.OBJECT))
    if is_refused(findings):
        return CandidateFailure(outcome=EvaluationOutcome.REJECTED, findings=findings)
    draft.add_findings(findings)
    return dataclasses.replace(candidate, facts=facts, findings=findings)


def _allowed_formats(task: Task, names: Sequence[WorkloadNames]) -> tuple[str, ...]:
    """Return the narrow formats that a task has, or lets its reference use."""
    if any(is_narrow(tensor.dtype) for workload in names for tensor in workload.tensors):
        return NARROW_FORMATS
    return (TF32,) if task.tf32 else ()


def assess_launches(
    candidate: BuiltCandidate,
    bound: Sequence[BoundWorkload],
    names: Sequence[WorkloadNames],
    language: Language,
    draft: EvaluationDraft,
) -> CandidateFailure | None:
    """Hold the object code against the rules that need to know how it is launched.

    Args:
        candidate: What was built.
        bound: What the plan became for each workload that it takes.
        names: The name tables of all workloads, in the order in which the plan was read.
        language: Of the candidate.
        draft: What the checks go to.
    """
    parsed, units = candidate.parsed, candidate.built.units
    unit_of = {
        table.workload: units[unit]
        for table, unit in zip(names, parsed.unit_of_workload, strict=True)
    }
    launched = ((unit_of[one.workload].report, one) for one in bound)
    found = update_findings((report, one) for report, one in launched if report is not None)
    if not found:
        return None
    draft.set_checks(policy_checks((*candidate.findings, *found), language, Subject.OBJECT))
    if is_refused(found):
        return CandidateFailure(outcome=EvaluationOutcome.REJECTED, findings=found)
    draft.add_findings(found)
    return None


def describe(
    candidate: BuiltCandidate, bound: BoundWorkload, operator_count: int
) -> tuple[KernelFacts, Measures]:
    """Return the facts about the kernels from the object code, and their measures."""
    # Units differ only in sizes: the first stands for all.
    facts = candidate.built.reports[0].kernels if candidate.built.reports else KernelFacts()
    counts = PlanCounts(
        launch_count=bound.launch_count,
        scratch_count=bound.scratch_count,
        reference_op_count=operator_count,
    )
    return facts, measures(facts, counts)


def launch_facts(bound: BoundWorkload) -> LaunchFacts:
    """Return the launches of a workload."""
    return LaunchFacts(
        launch_count=bound.launch_count,
        group_count=bound.group_count,
        group_size=bound.group_size,
        kernel=bound.main_kernel,
        shared_bytes=bound.main_shared_bytes,
    )


def operator_count(graph: Sequence[GraphNode]) -> int:
    """Return how many nodes of a reference's graph compute something."""
    return sum(node.op not in _NO_OPERATORS for node in graph)


def is_null(device: DeviceSpec) -> bool:
    """Return whether the device takes any text for object code."""
    return device.id.startswith("null:")


def _read(
    builder: ChildProcess,
    place: BuildPlace,
    request: EvaluationRequest,
    names: tuple[WorkloadNames, ...],
    draft: EvaluationDraft,
) -> ReadCandidateReply | CandidateFailure:
    asked = ReadCandidateRequest(
        source=request.source,
        configuration=request.configuration,
        device=place.spec,
        workloads=names,
        library_ops=allowed_library_ops(request.task, None),
    )
    started = time.perf_counter()
    parsed = read_candidate(builder, asked)
    wall_ms = 1e3 * (time.perf_counter() - started)
    if isinstance(parsed, CandidateFailure):
        draft.add_stage_time("parse", wall_ms)
        if parsed.outcome is EvaluationOutcome.REJECTED:
            draft.add_checks(policy_checks(parsed.findings, place.spec.language, *_READ))
        return parsed
    draft.add_stage_time("parse", wall_ms - parsed.policy_ms)
    draft.add_stage_time("policy", parsed.policy_ms)
    draft.set_configuration(parsed.configuration)
    draft.add_checks(policy_checks(parsed.findings, place.spec.language, *_READ))
    draft.add_findings(parsed.findings)
    return parsed
