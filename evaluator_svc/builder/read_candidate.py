"""A candidate to translation units: parse, policy, configuration, macros.

Pure: source and name tables in, texts out. `work.py` hands them to the compiler.
"""

import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from evaluator_svc.languages import Toolchain
from evaluator_svc.messages.locked import (
    ReadCandidateReply,
    ReadCandidateRequest,
    TranslationUnit,
)
from evaluator_svc.messages.plan_findings import plan_finding
from evaluator_svc.policy.plan import check_plan
from evaluator_svc.policy.source import check_source
from evaluator_svc.processes.binding import uses_library
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

T = TypeVar("T")


class CandidateRefusedError(Exception):
    """The candidate goes no further.

    Args:
        outcome: What becomes of it.
        findings: Why.
    """

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
    units, unit_of_workload = _planned(lambda: _units(request, plan, configuration, toolchain))
    return ReadCandidateReply(
        configuration=settings_of(configuration),
        units=units,
        unit_of_workload=unit_of_workload,
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


def _units(
    request: ReadCandidateRequest,
    plan: Plan,
    configuration: Mapping[str, TuneValue],
    toolchain: Toolchain,
) -> tuple[tuple[TranslationUnit, ...], tuple[int, ...]]:
    units: dict[TranslationUnit, int] = {}
    unit_of_workload = []
    limits = device_limits(request.device)
    code, language = request.source.device_code, request.source.language.value
    options = toolchain.options_of(code)
    for workload in request.workloads:
        table = name_table(workload.tensors, workload.scalars)
        try:
            macros = {**configuration, **constants(plan, table, configuration, limits)}
        except PlanError:
            if not workload.is_optional or not units:
                raise
            unit_of_workload.append(0)  # the runner finds the same, and leaves it out
            continue
        unit = TranslationUnit(
            source=translation_unit(code, macros, toolchain.prelude, language),
            options=options,
            kernels=tuple(k.name for k in kernels(code, language, macros)),
        )
        unit_of_workload.append(units.setdefault(unit, len(units)))
    return tuple(units), tuple(unit_of_workload)
