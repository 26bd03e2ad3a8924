"""What tools answer: typed digests of bounded size, in printable text and a fixed order."""

import math
from typing import Final

from pydantic import BaseModel, ConfigDict

from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.device import Capabilities
from kernel_foundry.domain.evaluation import Evaluation, WorkloadResult
from kernel_foundry.domain.finding import Finding, errors_first
from kernel_foundry.domain.lesson import LessonHit
from kernel_foundry.domain.profile_digest import digest_lines
from kernel_foundry.printable import printable
from kernel_foundry.sdk.verdict_text import arithmetic_line, checks_text

_MOST_ITEMS: Final = 16
"""Of each list; the first are those that matter most."""
_LONGEST_TEXT: Final = 1000
"""Characters of each text."""


class _Answer(BaseModel):
    """The docstrings of its fields go into the schema that an agent reads."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)


class Device(_Answer):
    """A device that candidates are judged on."""

    id: str
    name: str
    architecture: str


class Devices(_Answer):
    """What an evaluator can do."""

    devices: list[Device]
    missing: list[str]
    """Kinds that are not available, and why."""


class Tensor(_Answer):
    """A tensor that a launch plan may name."""

    name: str
    role: str
    dtype: str
    shape: list[int]


class AdmissionAnswer(_Answer):
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


class FindingAnswer(_Answer):
    """One diagnosis of a candidate."""

    kind: str
    severity: str
    message: str
    line: int | None
    hint: str
    figures: dict[str, float | None]
    """Null where the number is none."""


class WorkloadAnswer(_Answer):
    """What became of a candidate on one workload."""

    name: str
    held_out: bool
    median_ns: float | None
    baselines_ns: dict[str, float]
    speedup: float | None
    speedup_interval: list[float] | None
    """95 %."""
    traffic_bound_share: float | None
    """Of the time that moving the bytes takes at least, in (0, 1]."""


class Verdict(_Answer):
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
    """What its kernels do with the device; empty: not asked for."""
    registers: dict[str, int]
    """Of each kernel."""


class LessonAnswer(_Answer):
    """What earlier candidates taught."""

    id: int
    symptom: str
    move: str
    findings: list[str]
    mean_speedup: float
    """Of the candidates it was shown for, over their parents."""
    uses: int
    failures: int
    score: float


def devices_answer(capabilities: Capabilities) -> Devices:
    """Return a digest of what an evaluator can do."""
    return Devices(
        devices=[
            Device(id=_text(d.id), name=_text(d.name), architecture=_text(d.architecture))
            for d in capabilities.devices[:_MOST_ITEMS]
        ],
        missing=_texts(
            tuple(f"{a.kind}: {a.reason}" for a in capabilities.availability if not a.available)
        ),
    )


def admission_answer(admission: Admission) -> AdmissionAnswer:
    """Return a digest of an admission."""
    first = admission.workloads[0] if admission.workloads else None
    return AdmissionAnswer(
        admitted=admission.admitted,
        task=_text(admission.task),
        device=_text(admission.device.id),
        refusals=_texts(admission.refusals),
        warnings=_texts((*admission.degeneracies, *admission.warnings)),
        tensors=[
            Tensor(name=t.name, role=t.role.value, dtype=t.dtype, shape=list(t.shape))
            for t in (first.tensors[: 4 * _MOST_ITEMS] if first else ())
        ],
        workloads=[_text(w.workload) for w in admission.workloads[:_MOST_ITEMS]],
        baselines_ns={b.name: b.timing.median_ns for b in (first.baselines if first else ())},
    )


def verdict(evaluation: Evaluation) -> Verdict:
    """Return a digest of a verdict."""
    kernels = evaluation.compile.kernels if evaluation.compile else ()
    findings = errors_first(evaluation.findings)
    return Verdict(
        outcome=evaluation.outcome.name,
        passed=evaluation.passed,
        candidate=evaluation.candidate,
        device=_text(evaluation.device),
        speedup=evaluation.speedup,
        speedup_interval=_interval(evaluation.speedup_interval),
        trust=evaluation.trust.value,
        arithmetic=_text(arithmetic_line(evaluation)),
        checks=_text(checks_text(evaluation.checks)),
        configuration={_text(s.name): _text(s.value) for s in evaluation.configuration},
        workloads=[_workload(w) for w in evaluation.workloads[:_MOST_ITEMS]],
        findings=[_finding(f) for f in findings[:_MOST_ITEMS]],
        findings_left_out=max(len(findings) - _MOST_ITEMS, 0),
        profile=[] if evaluation.profile is None else list(digest_lines(evaluation.profile)),
        registers={_text(k.kernel): k.registers for k in kernels[:_MOST_ITEMS]},
    )


def lesson_answer(hit: LessonHit) -> LessonAnswer:
    """Return a digest of a lesson that was found."""
    lesson = hit.lesson
    return LessonAnswer(
        id=lesson.id,
        symptom=_text(lesson.symptom),
        move=_text(lesson.move),
        findings=[kind.value for kind in lesson.findings],
        mean_speedup=math.exp(lesson.effect),
        uses=lesson.use_count,
        failures=lesson.failure_count,
        score=hit.score,
    )


def _workload(result: WorkloadResult) -> WorkloadAnswer:
    return WorkloadAnswer(
        name=_text(result.workload),
        held_out=result.held_out,
        median_ns=result.timing.median_ns if result.timing else None,
        baselines_ns={b.name: b.timing.median_ns for b in result.baselines},
        speedup=result.speedup,
        speedup_interval=_interval(result.speedup_interval),
        traffic_bound_share=result.traffic_bound_share,
    )


def _finding(finding: Finding) -> FindingAnswer:
    return FindingAnswer(
        kind=finding.kind.value,
        severity=finding.severity.value,
        message=_text(finding.message),
        line=finding.line,
        hint=_text(finding.hint),
        figures={
            _text(f.name): f.value if math.isfinite(f.value) else None
            for f in finding.evidence[:_MOST_ITEMS]
        },
    )


def _interval(interval: tuple[float, float] | None) -> list[float] | None:
    return list(interval) if interval else None


def _texts(texts: tuple[str, ...]) -> list[str]:
    return [_text(text) for text in texts[:_MOST_ITEMS]]


def _text(text: str) -> str:
    shown = printable(text)
    return shown if len(shown) <= _LONGEST_TEXT else f"{shown[: _LONGEST_TEXT - 1]}…"
