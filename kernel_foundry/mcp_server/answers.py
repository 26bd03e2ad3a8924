"""What tools answer of tasks and candidates: typed digests of bounded size, in a fixed order.

All text is printable. Answers about runs are in `run_answers`, about experience in
`knowledge_answers`.
"""

import math
from collections.abc import Iterable
from itertools import islice
from typing import Final

from pydantic import BaseModel, ConfigDict

from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.device import Capabilities
from kernel_foundry.domain.evaluation import Evaluation, WorkloadResult
from kernel_foundry.domain.finding import Finding, errors_first
from kernel_foundry.domain.profile_digest import digest_lines
from kernel_foundry.plan.candidate_text import split
from kernel_foundry.printable import printable
from kernel_foundry.sdk.verdict_text import arithmetic_line, checks_text

MOST_ITEMS: Final = 16
"""Most items of a list, the most important first."""
LONGEST_TEXT: Final = 1000
"""Most characters of a text."""


class Answer(BaseModel):
    """What all answers share: the docstrings of fields go into the schema that an agent reads."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)


class Device(Answer):
    """A device that candidates are judged on."""

    id: str
    name: str
    architecture: str


class Devices(Answer):
    """What an evaluator can do."""

    devices: list[Device]
    missing: list[str]
    """Kinds that are not available, and why."""


class Tensor(Answer):
    """A tensor that a launch plan may name."""

    name: str
    role: str
    dtype: str
    shape: list[int]


class AdmissionAnswer(Answer):
    """What is known of a task before any candidate is made."""

    admitted: bool
    task: str
    device: str
    refusals: list[str]
    warnings: list[str]
    tensors: list[Tensor]
    """Of the first workload."""
    workloads: list[str]
    baselines_ns: dict[str, float]
    """Median of each baseline on the first workload."""


class FindingAnswer(Answer):
    """One diagnosis of a candidate."""

    kind: str
    severity: str
    message: str
    line: int | None
    hint: str
    figures: dict[str, float | None]
    """Null if it is not a finite number."""


class WorkloadAnswer(Answer):
    """What became of a candidate on one workload."""

    name: str
    held_out: bool
    median_ns: float | None
    baselines_ns: dict[str, float]
    speedup: float | None
    speedup_interval: list[float] | None
    """95 %."""
    traffic_bound_share: float | None
    """Traffic bound over the time, in (0, 1]."""


class Verdict(Answer):
    """A candidate's verdict."""

    outcome: str
    """PASSED, BUILT, or how it failed."""
    passed: bool
    candidate: str
    """Digest."""
    device: str
    speedup: float | None
    """Over the fastest baseline."""
    speedup_interval: list[float] | None
    trust: str
    arithmetic: str
    checks: str
    configuration: dict[str, str]
    workloads: list[WorkloadAnswer]
    findings: list[FindingAnswer]
    """Errors first."""
    findings_left_out: int
    profile: list[str]
    """Profile of its kernels; empty unless requested by `profile`."""
    registers: dict[str, int]
    """Of each kernel."""


def devices_answer(capabilities: Capabilities) -> Devices:
    """Return a digest of what an evaluator can do."""
    return Devices(
        devices=[
            Device(id=shown(d.id), name=shown(d.name), architecture=shown(d.architecture))
            for d in capabilities.devices[:MOST_ITEMS]
        ],
        missing=shown_list(
            tuple(f"{a.kind}: {a.reason}" for a in capabilities.availability if not a.available)
        ),
    )


def admission_answer(admission: Admission) -> AdmissionAnswer:
    """Return a digest of an admission."""
    first = admission.workloads[0] if admission.workloads else None
    return AdmissionAnswer(
        admitted=admission.admitted,
        task=shown(admission.task),
        device=shown(admission.device.id),
        refusals=shown_list(admission.refusals),
        warnings=shown_list((*admission.degeneracies, *admission.warnings)),
        tensors=[
            Tensor(name=t.name, role=t.role.value, dtype=t.dtype, shape=list(t.shape))
            for t in (first.tensors[: 4 * MOST_ITEMS] if first else ())
        ],
        workloads=[shown(w.workload) for w in admission.workloads[:MOST_ITEMS]],
        baselines_ns={b.name: b.timing.median_ns for b in (first.baselines if first else ())},
    )


def verdict(evaluation: Evaluation, text: str = "") -> Verdict:
    """Return a digest of a verdict.

    Args:
        evaluation: The verdict.
        text: Of the candidate, whose lines a profile quotes; empty: by number alone.
    """
    kernels = evaluation.compile.kernels if evaluation.compile else ()
    findings = errors_first(evaluation.findings)
    return Verdict(
        outcome=evaluation.outcome.name,
        passed=evaluation.passed,
        candidate=evaluation.candidate,
        device=shown(evaluation.device),
        speedup=evaluation.speedup,
        speedup_interval=interval(evaluation.speedup_interval),
        trust=evaluation.trust.value,
        arithmetic=shown(arithmetic_line(evaluation)),
        checks=shown(checks_text(evaluation.checks)),
        configuration={shown(s.name): shown(s.value) for s in evaluation.configuration},
        workloads=[_workload(w) for w in evaluation.workloads[:MOST_ITEMS]],
        findings=[_finding(f) for f in findings[:MOST_ITEMS]],
        findings_left_out=max(len(findings) - MOST_ITEMS, 0),
        profile=_profile_lines(evaluation, text),
        registers={shown(k.kernel): k.registers for k in kernels[:MOST_ITEMS]},
    )


def _profile_lines(evaluation: Evaluation, text: str) -> list[str]:
    if evaluation.profile is None:
        return []
    return list(digest_lines(evaluation.profile, split(text).device_code if text else ""))


def _workload(result: WorkloadResult) -> WorkloadAnswer:
    return WorkloadAnswer(
        name=shown(result.workload),
        held_out=result.held_out,
        median_ns=result.timing.median_ns if result.timing else None,
        baselines_ns={b.name: b.timing.median_ns for b in result.baselines},
        speedup=result.speedup,
        speedup_interval=interval(result.speedup_interval),
        traffic_bound_share=result.traffic_bound_share,
    )


def _finding(finding: Finding) -> FindingAnswer:
    return FindingAnswer(
        kind=finding.kind.value,
        severity=finding.severity.value,
        message=shown(finding.message),
        line=finding.line,
        hint=shown(finding.hint),
        figures={
            shown(f.name): f.value if math.isfinite(f.value) else None
            for f in finding.evidence[:MOST_ITEMS]
        },
    )


def interval(bounds: tuple[float, float] | None) -> list[float] | None:
    """Return the bounds of an interval as JSON has them."""
    return list(bounds) if bounds else None


def shown_list(texts: Iterable[str]) -> list[str]:
    """Return the first of many texts, each as `shown`."""
    return [shown(text) for text in islice(texts, MOST_ITEMS)]


def shown(text: str) -> str:
    """Return a text of anybody, printable and of bounded length."""
    plain = printable(text)
    return plain if len(plain) <= LONGEST_TEXT else f"{plain[: LONGEST_TEXT - 1]}…"
