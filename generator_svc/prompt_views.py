"""What prompt templates print: facts of a request as short texts, each of bounded length.

Held-out workloads never reach a text made here. Knows nothing of templates or models.
"""

import ast
from dataclasses import dataclass

from kernel_foundry.domain.admission import Admission, WorkloadAdmission
from kernel_foundry.domain.archive import Elite, Selection
from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.evaluation import Evaluation, WorkloadResult
from kernel_foundry.domain.finding import Finding
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.measures import DIMENSIONS, Measures
from kernel_foundry.domain.task import Precision, Task, Tolerance
from kernel_foundry.plan import NameTable, ScalarName, TensorName, render

MAX_REFERENCE_CHARS = 24_000
MAX_CANDIDATE_CHARS = 24_000
MAX_INSPIRATION_CHARS = 8_000
MAX_LOG_CHARS = 3_000
MAX_FINDING_CHARS = 1_200
MAX_INSTRUCTIONS_CHARS = 8_000
MAX_WORKLOADS = 4
MAX_FINDINGS = 12
MAX_INSPIRATIONS = 3

_LEVELS = {
    "memory": (
        "scalar or strided global access",
        "coalesced and vectorised access",
        "tiles staged in local memory",
        "tiles in local memory and in registers, prefetched",
    ),
    "algorithm": (
        "direct translation in several passes",
        "fused, with fewer passes than the reference has operators",
        "cooperative or reformulated: work-group reduction, scan, online recurrence",
        "blocked with reuse of register tiles, or asymptotically better",
    ),
    "synchronization": (
        "no synchronisation",
        "work-group barriers",
        "sub-group or warp primitives",
        "global: atomics, several passes, cooperative",
    ),
}
"""What each level of each measure means (the table of behaviour measures)."""


_PRECISION_TEXTS = {
    Precision.FP32: "Inputs and weights are float32.",
    Precision.FP16: "Inputs and weights are cast to float16.",
    Precision.BF16: "Inputs and weights are cast to bfloat16.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadView:
    """One workload that the model may see."""

    name: str
    names: str
    flops_text: str
    sol_text: str
    baselines_text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateView:
    """A known candidate with what the hardware said."""

    text: str
    verdict: str
    lines: tuple[str, ...]
    findings: tuple[str, ...]
    log: str


def clip(text: str, max_chars: int) -> str:
    """Return `text`, its middle replaced by a note when it is longer than `max_chars`.

    Head and tail stay, since the first error and the final summary of a log both matter.
    """
    if len(text) <= max_chars:
        return text
    head = text[: max_chars * 2 // 3]
    tail = text[len(text) - (max_chars - len(head)) :]
    return f"{head}\n[... {len(text) - max_chars} characters left out ...]\n{tail}"


def tolerance_text(tolerance: Tolerance) -> str:
    """Return the bound of an element's error; the scale is that of the element's row."""
    return f"{tolerance.atol:g} * scale + {tolerance.rtol:g} * |expected|"


def precision_text(task: Task, language: Language) -> str:
    """Return what inputs and weights are, and how exactly products have to be computed."""
    text = _PRECISION_TEXTS[task.precision]
    if task.tf32 and language is Language.CUDA:
        text += (
            " Matrix products and convolutions may round their operands to TF32 (tensor cores,"
            " sums in float32), as the PyTorch that you are timed against does."
        )
    return text


def workload_views(admission: Admission) -> tuple[WorkloadView, ...]:
    """Return the first few workloads that are not held out."""
    shown = [w for w in admission.workloads if not w.held_out]
    return tuple(_workload_view(w) for w in shown[:MAX_WORKLOADS])


def device_lines(device: DeviceSpec) -> tuple[str, ...]:
    """Return the queried and measured facts of `device`."""
    lines = [
        f"{device.name} ({device.vendor}, {device.architecture})",
        f"{device.compute_units} compute units, preferred sub-group size "
        f"{device.sub_group_size}, work-groups of up to {device.max_block}",
        f"{_bytes(device.shared_bytes)} local memory a work-group, last-level cache "
        f"{_bytes(device.cache_bytes)}, memory {_bytes(device.memory_bytes)}",
    ]
    if device.unit_limits is not None:
        limits = device.unit_limits
        lines.append(
            f"a compute unit holds {limits.registers} registers, {_bytes(limits.shared_bytes)} "
            f"local memory, {limits.work_items} work-items, {limits.groups} work-groups"
        )
    if device.peaks is not None:
        peaks = device.peaks
        lines.append(
            f"measured: {peaks.bandwidth_bytes_per_second / 1e9:.1f} GB/s from memory, "
            f"{peaks.cache_bandwidth_bytes_per_second / 1e9:.1f} GB/s from cache, "
            f"{peaks.flops_per_second / 1e9:.0f} GFLOP/s float32, "
            f"{peaks.launch_ns / 1e3:.1f} us for an empty launch"
        )
    return tuple(lines)


def candidate_view(elite: Elite, task: Task, *, max_chars: int) -> CandidateView:
    """Return `elite` as prompts show it."""
    source, evaluation = elite.candidate.source, elite.evaluation
    hidden = tuple(w.name for w in task.workloads if w.held_out)
    findings = evaluation.findings[:MAX_FINDINGS]
    text = render(source.language.value, source.device_code, source.plan)
    log = evaluation.compile.log if evaluation.compile and not evaluation.passed else ""
    return CandidateView(
        text=clip(text.strip(), max_chars),
        verdict=_verdict(evaluation),
        lines=_result_lines(evaluation),
        findings=tuple(_finding_text(f, hidden) for f in findings),
        log=clip(log, MAX_LOG_CHARS),
    )


def direction_lines(selection: Selection) -> tuple[str, ...]:
    """Return the direction in words, goal before way; empty when the selection gives none."""
    lines: list[str] = []
    if selection.target is not None:
        parent = selection.parent.measures if selection.parent is not None else None
        lines += _target_lines(selection.target, parent)
    if selection.hint:
        lines.append(selection.hint)
    return tuple(lines)


def _workload_view(workload: WorkloadAdmission) -> WorkloadView:
    baselines = [f"{b.name} {_time(b.timing.median_ns)}" for b in workload.baselines]
    return WorkloadView(
        name=workload.workload,
        names=_name_table(workload).render(),
        flops_text=f"{workload.flops / 1e6:.1f} MFLOP, {_bytes(workload.minimal_bytes)} at least",
        sol_text=_time(workload.sol_ns),
        baselines_text="".join(f"; {text}" for text in baselines),
    )


def _name_table(workload: WorkloadAdmission) -> NameTable:
    return NameTable(
        tensors=tuple(
            TensorName(name=t.name, dtype=t.dtype, shape=t.shape, role=t.role.value, path=t.path)
            for t in workload.tensors
        ),
        scalars=tuple(
            ScalarName(name=s.name, value=ast.literal_eval(s.literal)) for s in workload.scalars
        ),
    )


def _verdict(evaluation: Evaluation) -> str:
    if not evaluation.passed:
        return f"{evaluation.outcome.name} (not correct)"
    speedup = evaluation.speedup
    measures = _measures_text(evaluation.measures)
    if speedup is None:
        return f"PASSED{measures}"
    return f"PASSED, {speedup:.2f}x the faster of PyTorch eager and torch.compile{measures}"


def _measures_text(measures: Measures | None) -> str:
    if measures is None:
        return ""
    levels = ", ".join(f"{name} {getattr(measures, name)}" for name in DIMENSIONS)
    return f" (levels 0-3: {levels})"


def _result_lines(evaluation: Evaluation) -> tuple[str, ...]:
    lines = [f"configuration: {s.name} = {s.value}" for s in evaluation.configuration]
    for result in evaluation.workloads:
        if not result.held_out:
            lines += _workload_lines(result)
    return tuple(lines)


def _workload_lines(result: WorkloadResult) -> list[str]:
    lines = []
    if result.timing is not None:
        share = result.roofline_share
        baselines = ", ".join(f"{b.name} {_time(b.timing.median_ns)}" for b in result.baselines)
        lines.append(
            f"{result.workload}: {_time(result.timing.median_ns)}"
            + (f"; baselines: {baselines}" if baselines else "")
            + (f"; {share:.0%} of the speed of light" if share is not None else "")
        )
    correctness = result.correctness
    if correctness is not None and correctness.mismatch_count:
        lines.append(
            f"{result.workload}: {correctness.mismatch_count} of {correctness.element_count} "
            f"elements wrong, max abs error {correctness.max_abs_error:.3g}, first at flat "
            f"index {correctness.first_mismatch}"
        )
    return lines


def _finding_text(finding: Finding, hidden: tuple[str, ...]) -> str:
    where = f" (line {finding.line})" if finding.line is not None else ""
    numbers = ", ".join(f"{e.name} = {e.value:.6g}" for e in finding.evidence)
    text = f"{finding.severity.value}: {finding.kind.value}{where}: {finding.message}"
    text += f" [{numbers}]" if numbers else ""
    text += f" Hint: {finding.hint}" if finding.hint else ""
    for name in hidden:
        text = text.replace(name, "(a workload that is not shown)")
    return clip(text, MAX_FINDING_CHARS)


def _target_lines(target: Measures, parent: Measures | None) -> list[str]:
    lines = []
    for name in DIMENSIONS:
        level = getattr(target, name)
        if parent is None or getattr(parent, name) != level:
            lines.append(f"Aim at {name} level {level}: {_LEVELS[name][level]}.")
    return lines


def _time(time_ns: float) -> str:
    return f"{time_ns / 1e6:.3f} ms"


def _bytes(count: int) -> str:
    if count >= 1 << 30:
        return f"{count / (1 << 30):.1f} GiB"
    return f"{count / (1 << 20):.1f} MiB" if count >= 1 << 20 else f"{count / (1 << 10):.1f} KiB"
