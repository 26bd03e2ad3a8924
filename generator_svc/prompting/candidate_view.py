"""A known candidate as prompts print it: its code, its verdict, and nothing of held-out sizes."""

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from generator_svc.held_out import HeldOut
from generator_svc.markdown import clip, fenced
from generator_svc.prompting.code_pieces import shortened_code
from generator_svc.prompting.findings import FindingView, finding_views
from generator_svc.prompting.kernel_times import kernel_times_lines
from generator_svc.prompting.suspicion import suspicion
from generator_svc.prompting.units import time_text
from kernel_foundry.domain.admission import Admission, TensorRole
from kernel_foundry.domain.archive import Elite
from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.check import CheckKind, CheckResult, Trust
from kernel_foundry.domain.evaluation import Correctness, Evaluation, WorkloadResult
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.measures import DIMENSIONS, Measures
from kernel_foundry.domain.profile_digest import digest_lines

MAX_LOG_CHARS: Final = 3_000
_MAX_PLAN_SHARE: Final = 0.4
"""Largest share of a candidate's space for its plan."""
_MAX_LINE_CHARS: Final = 300
_MAX_LINES: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateView:
    """A known candidate with what the hardware said."""

    source: KernelSource
    text: str
    """Its two blocks, shortened when they are long; empty when there was no room for them."""
    is_whole: bool
    """Whether nothing of them is left out."""
    meant_lines: frozenset[int]
    """Lines of device code that a finding points at."""
    verdict: str
    lines: tuple[str, ...]
    findings: tuple[FindingView, ...]
    profile: tuple[str, ...]
    """The profile of its kernels; empty if it was not profiled, or there was no room."""
    log: str
    """The compiler's, of what it refused."""


def candidate_view(
    elite: Elite, admission: Admission, held_out: HeldOut, *, max_chars: int | None = None
) -> CandidateView:
    """Return `elite` as prompts show it.

    Args:
        elite: A known candidate.
        admission: Of its task.
        held_out: What a prompt must not tell.
        max_chars: Room for its code; None: it is to be edited, and shown whole.
    """
    evaluation, source = elite.evaluation, elite.candidate.source
    size = len(source.device_code) + len(source.plan)
    room = size if max_chars is None else max_chars
    built = evaluation.compile
    # What was built has its warnings, registers and spills among the findings.
    log = built.log if built is not None and not built.object_bytes else ""
    return CandidateView(
        source=source,
        text=source_text(source, room, is_edited=max_chars is None),
        is_whole=size <= room,
        meant_lines=frozenset(
            f.line
            for f in evaluation.findings
            if f.line is not None and f.kind is not FindingKind.PLAN
        ),
        verdict=_verdict(evaluation, held_out),
        lines=_result_lines(evaluation, admission),
        findings=finding_views(source, evaluation, held_out),
        profile=_profile_lines(evaluation, source),
        log=clip(held_out.without_sizes(log.strip()), MAX_LOG_CHARS),
    )


def _profile_lines(evaluation: Evaluation, source: KernelSource) -> tuple[str, ...]:
    """Return the digest of a profile on a workload that is shown."""
    profile = evaluation.profile
    shown = {result.workload for result in evaluation.workloads if not result.held_out}
    if profile is None or profile.workload not in shown:
        return ()
    return digest_lines(profile, source.device_code)


def source_text(
    source: KernelSource,
    max_chars: int,
    meant_lines: frozenset[int] = frozenset(),
    *,
    is_edited: bool,
) -> str:
    """Return both blocks of `source`, whole functions left out of what is too long.

    Args:
        source: Device code and plan.
        max_chars: Room for both.
        meant_lines: Lines of device code whose functions are left out last.
        is_edited: Whether a reply may be edits of it.
    """
    code, plan = source.device_code, source.plan
    if len(code) + len(plan) > max_chars:
        plan = clip(plan, max(max_chars - len(code), int(max_chars * _MAX_PLAN_SHARE)))
        code = shortened_code(code, max_chars - len(plan), meant_lines, is_edited=is_edited)
    code, plan = code.strip("\n"), plan.strip("\n")
    return f"{fenced(code, source.language.value)}\n\n{fenced(plan, 'python')}"


def _verdict(evaluation: Evaluation, held_out: HeldOut) -> str:
    if not evaluation.passed:
        return f"{evaluation.outcome.name} (not correct)"
    speedup = evaluation.speedup
    measures = _measures_text(evaluation.measures)
    trust = ""
    if evaluation.trust is Trust.SUSPECT:
        why = clip(suspicion(evaluation, held_out), _MAX_LINE_CHARS)
        trust = f", but suspect{f' ({why})' if why else ''}, so any trusted one beats it"
    if speedup is None:
        return f"PASSED{trust}{measures}"
    return f"PASSED, {speedup:.2f}x the speed of the fastest PyTorch baseline{trust}{measures}"


def _measures_text(measures: Measures | None) -> str:
    if measures is None:
        return ""
    levels = ", ".join(f"{name} {getattr(measures, name)}" for name in DIMENSIONS)
    return f" (levels 0-3: {levels})"


def _result_lines(evaluation: Evaluation, admission: Admission) -> tuple[str, ...]:
    lines = []
    if evaluation.configuration:
        settings = ", ".join(f"{s.name} = {s.value}" for s in evaluation.configuration)
        lines.append(f"judged with {settings}; every other TUNE name has its first value")
    for result in evaluation.workloads:
        own = [c for c in evaluation.checks if c.workload == result.workload]
        failed = {check.kind for check in own if check.result is CheckResult.FAILED}
        if result.held_out:
            lines += _hidden_lines(result, failed)
        else:
            lines += _workload_lines(result, admission, failed)
    return tuple(clip(line, _MAX_LINE_CHARS) for line in lines[:_MAX_LINES])


def _share_text(share: float | None, of: str) -> str:
    return "" if share is None else f"; {share:.0%} of the {of}"


def _prepare_text(result: WorkloadResult) -> str:
    """Return that `prepare` is charged to every call, where it does more than layout."""
    if not result.charged_prepare_ns:
        return ""
    return (
        f"; prepare counted in: {time_text(result.charged_prepare_ns)} where layout takes "
        f"{time_text(result.prepare_limit_ns or 0.0)} at most"
    )


def _workload_lines(
    result: WorkloadResult, admission: Admission, failed: Collection[CheckKind]
) -> list[str]:
    lines = []
    if result.timing is not None:
        baselines = ", ".join(f"{b.name} {time_text(b.timing.median_ns)}" for b in result.baselines)
        lines.append(
            f"workload {result.workload}: {time_text(result.timing.median_ns)}"
            + (f"; baselines: {baselines}" if baselines else "")
            + _share_text(result.traffic_bound_share, "traffic bound")
            + _share_text(result.arithmetic_estimate_share, "arithmetic estimate")
            + _prepare_text(result)
        )
        lines += kernel_times_lines(result)
    correctness = result.correctness
    if correctness is not None and correctness.mismatch_count:
        lines.append(
            f"workload {result.workload}: {correctness.mismatch_count} of "
            f"{correctness.element_count} "
            f"elements wrong, max abs error {correctness.max_abs_error:.3g}"
            + _first_wrong(correctness, _output_shape(admission, result.workload))
        )
    elif CheckKind.TASK_CHECK in failed:
        lines.append(f"workload {result.workload}: not right by what the task's own check asks")
    elif correctness is not None and result.timing is None:
        lines.append(f"workload {result.workload}: all elements right")
    return lines


def _hidden_lines(result: WorkloadResult, failed: Collection[CheckKind]) -> list[str]:
    """Return that a workload is wrong that is not shown, and nothing of its sizes."""
    correctness = result.correctness
    if correctness is not None and correctness.mismatch_count:
        share = correctness.mismatch_count / max(1, correctness.element_count)
        what = f"{share:.1%} of the elements are wrong"
    elif CheckKind.TASK_CHECK in failed:
        what = "the outputs are not right by what the task's own check asks"
    else:
        return []
    return [
        f"with sizes that you are not shown {what}: look for what"
        " holds for the sizes above only (borders, divisibility, fixed strides and counts)"
    ]


def _first_wrong(correctness: Correctness, shape: tuple[int, ...]) -> str:
    """Return where the first wrong element lies, by coordinates where there is one output."""
    flat = correctness.first_mismatch
    if flat is None:
        return ""
    if not shape or flat >= math.prod(shape):
        return f", first at flat index {flat}"
    place, rest = [], flat
    for size in reversed(shape):
        rest, at = divmod(rest, size)
        place.append(at)
    return f", first at flat index {flat}: {tuple(reversed(place))} of {shape}"


def _output_shape(admission: Admission, workload: str) -> tuple[int, ...]:
    """Return the shape of the only output; () when there are several or none is known."""
    outputs = [
        tensor.shape
        for known in admission.workloads
        if known.workload == workload
        for tensor in known.tensors
        if tensor.role is TensorRole.OUTPUT
    ]
    return outputs[0] if len(outputs) == 1 else ()
