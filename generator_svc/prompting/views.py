"""What prompt templates print of task, device and candidates, as short texts.

Held-out workloads never reach a text made here.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from generator_svc.held_out import HeldOut
from generator_svc.markdown import clip, fenced
from generator_svc.prompting.code_pieces import shortened_code
from generator_svc.prompting.findings import FindingView, finding_views
from generator_svc.prompting.kernel_times import kernel_times_lines
from generator_svc.prompting.units import bytes_text, time_text
from kernel_foundry.domain.admission import Admission, TensorRole, WorkloadAdmission
from kernel_foundry.domain.archive import Elite, Selection
from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.check import Trust
from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.evaluation import Correctness, Evaluation, WorkloadResult
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.measures import DIMENSIONS, Measures
from kernel_foundry.domain.profile_digest import digest_lines
from kernel_foundry.domain.task import Task, Tolerance
from kernel_foundry.plan.from_admission import name_table

MAX_LOG_CHARS: Final = 3_000
MAX_WORKLOADS: Final = 4
MAX_INSPIRATIONS_SHOWN: Final = 3
"""Whatever the archive selected (two of its own choice); more would crowd the parent out."""
_MAX_PLAN_SHARE: Final = 0.4
"""Largest share of a candidate's space for its plan."""
_MAX_HINT_CHARS: Final = 1_000
_MAX_LINE_CHARS: Final = 300
_MAX_LINES: Final = 20

_LEVELS = {
    "memory": (
        "scalar or strided global access",
        "coalesced and vectorised access",
        "tiles staged in {near} memory",
        "tiles in {near} memory, and register tiles or loads ahead of use",
    ),
    "algorithm": (
        "direct translation in several passes",
        "fused, with fewer passes than the reference has operators",
        "cooperative or reformulated: work-group reduction, scan, online recurrence",
        "blocked with reuse of register tiles, or matrix units",
    ),
    "synchronization": (
        "no synchronisation",
        "work-group barriers",
        "sub-group or warp primitives",
        "global: atomics, several passes, cooperative",
    ),
}
"""What each level of each measure means (the table of behaviour measures)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadView:
    """One workload that the model may see."""

    name: str
    names: str
    """The name table; of the second and later ones only the lines that differ from the first."""
    flops_text: str
    limits_text: str
    baselines_text: str


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
    """What its kernels do with the device; empty: it was not profiled, or there was no room."""
    log: str


def tolerance_text(task: Task, tolerance: Tolerance) -> str:
    """Return the bound of an element's error, what its scale is, and bits that are asked for."""
    bound = f"{tolerance.atol:g} * scale + {tolerance.rtol:g} * |expected|"
    if task.tolerance is not None:
        scale = "with scale = 1"
    else:
        scale = (
            "where scale is the root mean square of the expected values in the element's row (last"
            " axis; of its image, the axes behind the first two, where there are four or more)"
        )
    if tolerance.output_shares:
        scale += "; of these bounds each output has its own share: " + ", ".join(
            f"output {i} {_bound_share(tolerance, i)}" for i in range(len(tolerance.output_shares))
        )
    bits = f"; all outputs need {task.least_bits:g} effective bits" if task.least_bits else ""
    return f"{bound}, {scale}{bits}"


def _bound_share(tolerance: Tolerance, output: int) -> str:
    if tolerance.is_exact(output):
        return "none (it holds values of inputs, and has to be equal)"
    return f"{tolerance.output_shares[output]:.2g}"


def mode_text(task: Task) -> str:
    """Return which mode the reference runs in, and what that means for its layers."""
    if task.training:
        return (
            "The reference runs in training mode, without gradients: batch normalisation uses the"
            " mean and variance of the batch at hand, not running_mean and running_var, which need"
            " not be updated."
        )
    return (
        "The reference runs in evaluation mode: batch normalisation uses running_mean and"
        " running_var, and dropout does nothing."
    )


_LOSSES: Final = ("cross_entropy_loss", "nll_loss")
"""Operators whose labels may say that a row is to be ignored."""


def precision_text(task: Task, admission: Admission) -> str:
    """Return what inputs and weights are, and how exactly products have to be computed."""
    dtypes = {
        tensor.dtype: None
        for workload in admission.workloads[:1]
        for tensor in workload.tensors
        if tensor.role is not TensorRole.OUTPUT and "float" in tensor.dtype
    }
    text = f"Inputs and weights are {' and '.join(dtypes) or 'no floating-point numbers'}."
    if task.constants:
        names = ", ".join(task.constants)
        text += f" Constants of the task, whose values a kernel may rely on: {names}."
    if any(
        loss in node.op for w in admission.workloads[:1] for node in w.graph for loss in _LOSSES
    ):
        text += (
            " Labels that equal the loss's ignore_index (-100 unless the reference says otherwise)"
            " are left out, as in PyTorch, and kernels are tried on some."
        )
    if task.tf32 and admission.device.language is Language.CUDA:
        text += (
            " Matrix products and convolutions may round their operands to TF32 (tensor cores,"
            " sums in float32), as the PyTorch that you are timed against does."
        )
    return text


def workload_views(admission: Admission) -> tuple[WorkloadView, ...]:
    """Return the first few workloads that are not held out."""
    shown = [w for w in admission.workloads if not w.held_out][:MAX_WORKLOADS]
    views: list[WorkloadView] = []
    for workload in shown:
        names = name_table(workload.tensors, workload.scalars).render()
        if views:
            names = _lines_not_in(names, views[0].names)
        views.append(_workload_view(workload, names))
    return tuple(views)


def _lines_not_in(text: str, known: str) -> str:
    """Return the lines of `text` that `known` has not, however their columns are laid out."""
    known_lines = {tuple(line.split()) for line in known.splitlines()}
    return "\n".join(line for line in text.splitlines() if tuple(line.split()) not in known_lines)


def device_lines(device: DeviceSpec, words: Mapping[str, str]) -> tuple[str, ...]:
    """Return the queried and measured facts of `device`.

    `words`: the language's `near_memory`, `unit`, `group`, `sub_group` and `item`.
    """
    near, unit, group = words["near_memory"], words["unit"], words["group"]
    lines = [
        f"{device.name} ({device.vendor}, {device.architecture})",
        *target_lines(device),
        f"{device.compute_units} {unit}s, preferred {words['sub_group']} size "
        f"{device.sub_group_size}, {group}s of up to {device.max_block}",
        f"{bytes_text(device.shared_bytes)} {near} memory a {group}, last-level cache "
        f"{bytes_text(device.cache_bytes)}, memory {bytes_text(device.memory_bytes)}",
    ]
    if device.unit_limits is not None:
        limits = device.unit_limits
        lines.append(
            f"a {unit} holds {limits.registers} registers, {bytes_text(limits.shared_bytes)} "
            f"{near} memory, {limits.work_items} {words['item']}s, {limits.groups} {group}s"
        )
    if device.peaks is not None:
        peaks = device.peaks
        lines.append(
            f"measured: {peaks.bandwidth_bytes_per_second / 1e9:.1f} GB/s from memory, "
            f"{peaks.cache_bandwidth_bytes_per_second / 1e9:.1f} GB/s from cache, "
            f"{peaks.flops_per_second / 1e9:.0f} GFLOP/s float32 FMA, "
            + "".join(
                f"{rate.flops_per_second / 1e12:.0f} TFLOP/s {rate.format} on matrix units, "
                for rate in peaks.matrix_rates
            )
            + f"{peaks.launch_ns / 1e3:.1f} us for an empty launch"
        )
    return tuple(clip(line, _MAX_LINE_CHARS) for line in lines)


def compiler_target(architecture: str) -> str:
    """Return what NVRTC builds for: from compute capability 9.0 on everything the device has."""
    digits = architecture.removeprefix("sm_")
    return f"{architecture}a" if digits.isdecimal() and int(digits) >= 90 else architecture


_TARGETS: Final = (
    (
        100,
        110,
        "`tcgen05` with tensor memory, clusters and `cp.async.bulk` are there, `wgmma` is not",
    ),
    (90, 90, "`wgmma`, `setmaxnreg`, `mbarrier`, clusters and `cp.async.bulk` are there"),
    (
        120,
        129,
        "`mma.sync`, `mbarrier` and `cp.async.bulk` are there, `wgmma` and `tcgen05` are not",
    ),
    (80, 89, "`mma.sync` and `cp.async` are there, `wgmma`, clusters and `cp.async.bulk` are not"),
    (70, 79, "`mma.sync` of float16 is there, `cp.async` and bfloat16 products are not"),
)
"""By compute capability, from and up to: what sets the generation apart."""


def target_lines(device: DeviceSpec) -> tuple[str, ...]:
    """Return the compiler's exact target and what it has; nothing for SYCL."""
    digits = device.architecture.removeprefix("sm_").rstrip("af")
    if device.language is not Language.CUDA or not digits.isdecimal():
        return ()
    target = compiler_target(device.architecture)
    for first, last, text in _TARGETS:
        if first <= int(digits) <= last:
            maps = "; a plan makes no tensor maps (TMA descriptors)" if first >= 90 else ""
            return (f"the compiler's target is {target}: {text}{maps}",)
    return (f"the compiler's target is {target}",)


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
    log = evaluation.compile.log if evaluation.compile and not evaluation.passed else ""
    return CandidateView(
        source=source,
        text=source_text(source, room),
        is_whole=size <= room,
        meant_lines=frozenset(
            f.line
            for f in evaluation.findings
            if f.line is not None and f.kind is not FindingKind.PLAN
        ),
        verdict=_verdict(evaluation),
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
    source: KernelSource, max_chars: int, meant_lines: frozenset[int] = frozenset()
) -> str:
    """Return both blocks of `source`, whole functions left out of what is too long.

    Args:
        source: Device code and plan.
        max_chars: Room for both.
        meant_lines: Lines of device code whose functions are left out last.
    """
    code, plan = source.device_code, source.plan
    if len(code) + len(plan) > max_chars:
        plan = clip(plan, max(max_chars - len(code), int(max_chars * _MAX_PLAN_SHARE)))
        code = shortened_code(code, max_chars - len(plan), meant_lines)
    code, plan = code.strip("\n"), plan.strip("\n")
    return f"{fenced(code, source.language.value)}\n\n{fenced(plan, 'python')}"


def direction_lines(selection: Selection, *, near: str) -> tuple[str, ...]:
    """Return the direction in words, goal before way; empty when the selection gives none.

    `near`: what the language calls the memory of a work-group.
    """
    lines: list[str] = []
    if selection.target is not None:
        parent = selection.parent.measures if selection.parent is not None else None
        lines += _target_lines(selection.target, parent, near)
    if selection.hint:
        lines.append(clip(selection.hint, _MAX_HINT_CHARS))
    return tuple(lines)


def _workload_view(workload: WorkloadAdmission, names: str) -> WorkloadView:
    baselines = [f"{b.name} {time_text(b.timing.median_ns)}" for b in workload.baselines]
    return WorkloadView(
        name=workload.workload,
        names=names,
        flops_text=f"{workload.flops / 1e6:.1f} MFLOP, {bytes_text(workload.minimal_bytes)} at"
        " least",
        limits_text=f"traffic bound {time_text(workload.traffic_bound_ns)}, arithmetic estimate "
        f"{time_text(workload.arithmetic_estimate_ns)} ({workload.arithmetic_unit})",
        baselines_text="".join(f"; {text}" for text in baselines),
    )


def _verdict(evaluation: Evaluation) -> str:
    if not evaluation.passed:
        return f"{evaluation.outcome.name} (not correct)"
    speedup = evaluation.speedup
    measures = _measures_text(evaluation.measures)
    trust = (
        ", but suspect, so any trusted one beats it" if evaluation.trust is Trust.SUSPECT else ""
    )
    if speedup is None:
        return f"PASSED{trust}{measures}"
    return f"PASSED, {speedup:.2f}x the speed of the fastest PyTorch baseline{trust}{measures}"


def _measures_text(measures: Measures | None) -> str:
    if measures is None:
        return ""
    levels = ", ".join(f"{name} {getattr(measures, name)}" for name in DIMENSIONS)
    return f" (levels 0-3: {levels})"


def _result_lines(evaluation: Evaluation, admission: Admission) -> tuple[str, ...]:
    lines = [f"configuration: {s.name} = {s.value}" for s in evaluation.configuration]
    for result in evaluation.workloads:
        lines += _hidden_lines(result) if result.held_out else _workload_lines(result, admission)
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


def _workload_lines(result: WorkloadResult, admission: Admission) -> list[str]:
    lines = []
    if result.timing is not None:
        baselines = ", ".join(f"{b.name} {time_text(b.timing.median_ns)}" for b in result.baselines)
        lines.append(
            f"{result.workload}: {time_text(result.timing.median_ns)}"
            + (f"; baselines: {baselines}" if baselines else "")
            + _share_text(result.traffic_bound_share, "traffic bound")
            + _share_text(result.arithmetic_estimate_share, "arithmetic estimate")
            + _prepare_text(result)
        )
        lines += kernel_times_lines(result)
    correctness = result.correctness
    if correctness is not None and correctness.mismatch_count:
        lines.append(
            f"{result.workload}: {correctness.mismatch_count} of {correctness.element_count} "
            f"elements wrong, max abs error {correctness.max_abs_error:.3g}"
            + _first_wrong(correctness, _output_shape(admission, result.workload))
        )
    elif correctness is not None and result.timing is None:
        lines.append(f"{result.workload}: all elements right")
    return lines


def _hidden_lines(result: WorkloadResult) -> list[str]:
    """Return that a workload is wrong that is not shown, and nothing of its sizes."""
    correctness = result.correctness
    if correctness is None or not correctness.mismatch_count:
        return []
    share = correctness.mismatch_count / max(1, correctness.element_count)
    return [
        f"with sizes that you are not shown {share:.1%} of the elements are wrong: look for what"
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


def _target_lines(target: Measures, parent: Measures | None, near: str) -> list[str]:
    lines = []
    for name in DIMENSIONS:
        level = getattr(target, name)
        if parent is None or getattr(parent, name) != level:
            means = _LEVELS[name][level].format(near=near)
            lines.append(f"Aim at {name} level {level}: {means}.")
    return lines
