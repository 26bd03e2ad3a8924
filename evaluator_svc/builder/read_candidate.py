"""A candidate to translation units: parse, policy, configuration, macros.

Pure: source and name tables in, texts out. `work.py` hands them to the compiler.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from evaluator_svc.languages import Toolchain
from evaluator_svc.messages.builder import ReadCandidateReply, ReadCandidateRequest, TranslationUnit
from evaluator_svc.messages.locked import WorkloadNames
from evaluator_svc.messages.plan_findings import plan_finding
from evaluator_svc.policy.plan import check_plan
from evaluator_svc.policy.source import check_source
from evaluator_svc.processes.binding import bind_workload, uses_library
from evaluator_svc.sizes.spare_use import is_spare_of_use
from kernel_foundry.domain.admission import NamedTensor
from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import Finding, FindingKind, Severity
from kernel_foundry.plan.configuration import chosen_values, constants, settings_of
from kernel_foundry.plan.errors import PlanError
from kernel_foundry.plan.from_admission import device_limits, name_table
from kernel_foundry.plan.macros import translation_unit
from kernel_foundry.plan.parse import parse
from kernel_foundry.plan.signature import kernels
from kernel_foundry.plan.tree import Plan, TuneValue

_MOST_OPTIONAL: Final = 4
"""Units for optional workloads alone: building one takes longer than all else of a verdict."""

T = TypeVar("T")


class CandidateRefusedError(Exception):
    """The candidate goes no further."""

    def __init__(self, outcome: EvaluationOutcome, findings: tuple[Finding, ...]) -> None:
        super().__init__(outcome.value)
        self.outcome = outcome
        self.findings = findings


def read_candidate(request: ReadCandidateRequest, toolchain: Toolchain) -> ReadCandidateReply:
    """Return what has to be built for every workload, equal units once.

    Raises:
        CandidateRefusedError: it is in another language than the device's, breaks the policy, or
            its plan does not fit.
    """
    started = time.perf_counter()
    _require_language(request)
    plan = _planned(lambda: parse(request.source.plan))
    parsed = time.perf_counter()
    findings = _check_policy(request.source, plan)
    checked = time.perf_counter()
    configuration = _planned(lambda: chosen_values(plan, request.configuration))
    found = _planned(lambda: _units(request, plan, configuration, toolchain))
    return ReadCandidateReply(
        configuration=settings_of(configuration),
        units=found.units,
        unit_of_workload=found.of_workload,
        left_out=found.left_out,
        parse_ms=1e3 * (parsed - started + time.perf_counter() - checked),
        policy_ms=1e3 * (checked - parsed),
        uses_library=uses_library(plan),
        findings=findings,
    )


def _require_language(request: ReadCandidateRequest) -> None:
    language, device = request.source.language, request.device
    if language is not device.language:
        finding = Finding(
            kind=FindingKind.EXTRACTION,
            severity=Severity.ERROR,
            message=f"the device code is {language.value}, the device {device.id} takes "
            f"{device.language.value}",
            hint=f"write it in {device.language.value}, or choose a device that takes "
            f"{language.value}",
        )
        raise CandidateRefusedError(EvaluationOutcome.EXTRACTION_FAILED, (finding,))


def _check_policy(source: KernelSource, plan: Plan) -> tuple[Finding, ...]:
    findings = (*check_source(source.device_code, source.language.value), *check_plan(plan))
    if any(finding.severity is Severity.ERROR for finding in findings):
        raise CandidateRefusedError(EvaluationOutcome.REJECTED, findings)
    return findings


def _planned(step: Callable[[], T]) -> T:
    try:
        return step()
    except PlanError as error:
        raise plan_refused(error) from error


def plan_refused(error: PlanError) -> CandidateRefusedError:
    """Return the refusal that says what `error` says."""
    return CandidateRefusedError(EvaluationOutcome.PLAN_ERROR, (plan_finding(error),))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Units:
    units: tuple[TranslationUnit, ...]
    of_workload: tuple[int, ...]
    left_out: tuple[str, ...]


def _units(
    request: ReadCandidateRequest,
    plan: Plan,
    configuration: Mapping[str, TuneValue],
    toolchain: Toolchain,
) -> _Units:
    """Return the units of the workloads that the plan takes.

    Spare workloads are left out where other optional ones, of units that are built in any case,
    show as much, and optional ones if that many units are built for others.
    """
    known: dict[TranslationUnit, int] = {}
    of_workload: list[int] = []
    left_out: list[str] = []
    needed_count = 0
    own, served = list[Sequence[NamedTensor]](), list[Sequence[NamedTensor]]()
    for workload in request.workloads:
        unit = None
        if not workload.is_spare or is_spare_of_use(workload.tensors, served, own):
            unit = _unit_of_taken(request, workload, plan, configuration, toolchain)
        is_extra = workload.is_optional and unit not in known
        if unit is None or (is_extra and len(known) - needed_count >= _MOST_OPTIONAL):
            left_out.append(workload.workload)
            of_workload.append(0)
            continue
        of_workload.append(known.setdefault(unit, len(known)))
        if not workload.is_optional:
            needed_count = len(known)
            own.append(workload.tensors)
        if workload.is_optional and of_workload[-1] < needed_count:
            served.append(workload.tensors)
    return _Units(units=tuple(known), of_workload=tuple(of_workload), left_out=tuple(left_out))


def _unit_of_taken(
    request: ReadCandidateRequest,
    workload: WorkloadNames,
    plan: Plan,
    configuration: Mapping[str, TuneValue],
    toolchain: Toolchain,
) -> TranslationUnit | None:
    """Return a workload's unit; None if it is optional and the plan refuses it."""
    try:
        unit = _unit(request, workload, plan, configuration, toolchain)
        if workload.is_optional:
            # What the runner will be refused need not be built.
            bind_workload(
                plan,
                workload,
                source=request.source,
                configuration=settings_of(configuration),
                device=request.device,
                library_ops=request.library_ops,
            )
    except PlanError:
        if not workload.is_optional:
            raise
        return None
    return unit


def _unit(
    request: ReadCandidateRequest,
    workload: WorkloadNames,
    plan: Plan,
    configuration: Mapping[str, TuneValue],
    toolchain: Toolchain,
) -> TranslationUnit:
    code, language = request.source.device_code, request.source.language.value
    table, limits = name_table(workload.tensors, workload.scalars), device_limits(request.device)
    macros = {**configuration, **constants(plan, table, configuration, limits)}
    return TranslationUnit(
        source=translation_unit(code, macros, toolchain.prelude, language),
        options=toolchain.options_of(code),
        kernels=tuple(k.name for k in kernels(code, language, macros)),
    )
