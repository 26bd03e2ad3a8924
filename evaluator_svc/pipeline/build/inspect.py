"""Reports on the object code of a candidate's units, read in an inspector (stage policy).

Who gets the processes is decided in `evaluator_svc.processes.candidate_inspectors`; what is found
comes with the object when it was built before.
"""

import dataclasses
from typing import Final

from evaluator_svc.cache.object_cache import BuiltUnit, ObjectCache
from evaluator_svc.messages.builder import ReadCandidateReply, TranslationUnit
from evaluator_svc.messages.inspector import InspectReply, InspectRequest
from evaluator_svc.messages.locked import CandidateFailure
from evaluator_svc.messages.object_report import ObjectReport
from evaluator_svc.messages.plausible import bounded
from evaluator_svc.pipeline.build.build import BuildResult
from evaluator_svc.policy.finding import rule_finding
from evaluator_svc.processes.ask_candidate import ask_candidate
from evaluator_svc.processes.candidate_inspectors import CandidateInspectors
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.language import Language

_SECONDS: Final = 120.0
"""The longest texts that are read at all take a third of that on one core of 2020."""


def inspect_units(
    inspectors: CandidateInspectors,
    built: BuildResult,
    parsed: ReadCandidateReply,
    language: Language,
    cache: ObjectCache,
) -> BuildResult | CandidateFailure:
    """Return `built` with a report of every unit that is used; remember those that are new.

    Nothing of it has run yet. A unit that no inspector could read to its end is refused.
    """
    units = list(built.units)
    for index, unit in enumerate(parsed.units):
        found = units[index]
        if found.report is not None or index in built.left_out:
            continue
        report = _inspect(inspectors, found, unit, language)
        if isinstance(report, CandidateFailure):
            return report
        units[index] = dataclasses.replace(found, report=report)
        cache.put(built.keys[index], units[index])
    built = dataclasses.replace(built, units=tuple(units))
    kernels = dict.fromkeys(kernel for report in built.reports for kernel in report.resources)
    compiled = dataclasses.replace(built.report, kernels=tuple(kernels))
    return dataclasses.replace(built, report=compiled)


def _inspect(
    inspectors: CandidateInspectors, built: BuiltUnit, unit: TranslationUnit, language: Language
) -> ObjectReport | CandidateFailure:
    request = InspectRequest(language=language, kernels=unit.kernels, log=built.log)
    with inspectors.taken() as process:
        answer = ask_candidate(
            process,
            request,
            InspectReply,
            seconds=_SECONDS,
            doing="reading the object code",
            blobs=(built.code, built.assembly),
        )
    if isinstance(answer, CandidateFailure):
        why = "; ".join(finding.message for finding in answer.findings)
        finding = rule_finding("object.unreadable", f"the object code cannot be read: {why}")
        return CandidateFailure(outcome=EvaluationOutcome.REJECTED, findings=(finding,))
    return dataclasses.replace(answer.report, findings=bounded(answer.report.findings))
