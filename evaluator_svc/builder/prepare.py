"""A candidate's text to translation units: split, parse, policy, configuration, macros.

Pure: text and name tables in, texts out. `work` hands them to the compiler.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from evaluator_svc.binding import uses_library
from evaluator_svc.messages.locked import (
    CandidateSource,
    PrepareReply,
    PrepareRequest,
    TranslationUnit,
)
from evaluator_svc.plan_inputs import device_limits, name_table, plan_finding
from evaluator_svc.policy.plan import check_plan
from evaluator_svc.policy.source import check_source
from kernel_foundry.domain.evaluation import EvaluationOutcome, Setting
from kernel_foundry.domain.finding import Finding, FindingKind, Severity
from kernel_foundry.domain.language import Language
from kernel_foundry.plan.candidate_text import CandidateText, ExtractionError, split
from kernel_foundry.plan.configuration import constants, parse_overrides
from kernel_foundry.plan.errors import PlanError
from kernel_foundry.plan.macros import translation_unit
from kernel_foundry.plan.parse import parse
from kernel_foundry.plan.signature import kernels
from kernel_foundry.plan.tree import Plan, TuneValue

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """What every source of a language is built with."""

    prelude: str
    """Text before the candidate's."""
    options_of: Callable[[str], tuple[str, ...]]
    """For the compiler, such as include folders; some depend on the device code."""


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


def prepare(request: PrepareRequest, toolchain: Toolchain) -> PrepareReply:
    """Return what has to be built for every workload, equal units once.

    Raises:
        CandidateRefusedError: the text holds no candidate, breaks the policy, or its plan does
            not fit.
    """
    started = time.perf_counter()
    text = _extract(request)
    plan = _planned(lambda: parse(text.plan_text))
    parsed = time.perf_counter()
    findings = _check_policy(text, plan)
    checked = time.perf_counter()
    configuration = _planned(lambda: _configuration(plan, request))
    units, unit_of_workload = _planned(
        lambda: _units(request, text, plan, configuration, toolchain)
    )
    source = CandidateSource(
        language=Language(text.language),
        device_code=text.device_code,
        plan=text.plan_text,
        configuration=tuple(
            Setting(name=name, value=str(value)) for name, value in configuration.items()
        ),
    )
    return PrepareReply(
        source=source,
        units=units,
        unit_of_workload=unit_of_workload,
        parse_ms=1e3 * (parsed - started + time.perf_counter() - checked),
        policy_ms=1e3 * (checked - parsed),
        uses_library=uses_library(plan),
        findings=findings,
    )


def _extract(request: PrepareRequest) -> CandidateText:
    try:
        text = split(request.text)
    except ExtractionError as error:
        raise _refused(EvaluationOutcome.EXTRACTION_FAILED, error.message) from error
    if text.language != request.device.language.value:
        raise _refused(
            EvaluationOutcome.EXTRACTION_FAILED,
            f"the device code is {text.language}, the device {request.device.id} takes "
            f"{request.device.language.value}",
        )
    return text


def _refused(outcome: EvaluationOutcome, message: str) -> CandidateRefusedError:
    finding = Finding(kind=FindingKind.EXTRACTION, severity=Severity.ERROR, message=message)
    return CandidateRefusedError(outcome, (finding,))


def _check_policy(text: CandidateText, plan: Plan) -> tuple[Finding, ...]:
    findings = (*check_source(text.device_code, text.language), *check_plan(plan))
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


def _configuration(plan: Plan, request: PrepareRequest) -> dict[str, TuneValue]:
    return parse_overrides(plan, (f"{s.name}={s.value}" for s in request.configuration))


def _units(
    request: PrepareRequest,
    text: CandidateText,
    plan: Plan,
    configuration: Mapping[str, TuneValue],
    toolchain: Toolchain,
) -> tuple[tuple[TranslationUnit, ...], tuple[int, ...]]:
    units: dict[TranslationUnit, int] = {}
    unit_of_workload = []
    limits = device_limits(request.device)
    options = toolchain.options_of(text.device_code)
    for workload in request.workloads:
        table = name_table(workload)
        try:
            macros = {**configuration, **constants(plan, table, configuration, limits)}
        except PlanError:
            if not workload.is_optional or not units:
                raise
            unit_of_workload.append(0)  # the runner finds the same, and leaves it out
            continue
        unit = TranslationUnit(
            source=translation_unit(text.device_code, macros, toolchain.prelude, text.language),
            options=options,
            kernels=tuple(k.name for k in kernels(text.device_code, text.language, macros)),
        )
        unit_of_workload.append(units.setdefault(unit, len(units)))
    return tuple(units), tuple(unit_of_workload)
