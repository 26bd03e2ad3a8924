"""Checks that a time suffices for the reference's operations on the units that object code uses.

No bound: a kernel that computes less than the graph is faster and may be right, so what is beyond
is a suspicion, unless the task itself says why less will do.
"""

from collections.abc import Sequence
from typing import Final

from evaluator_svc.languages import backend_of
from evaluator_svc.policy import ObjectFacts
from evaluator_svc.policy.finding import check_result, rule_finding
from kernel_foundry.domain.admission import GraphNode, WorkloadAdmission
from kernel_foundry.domain.check import Check, CheckKind, CheckResult
from kernel_foundry.domain.device import Peaks
from kernel_foundry.domain.evaluation import WorkloadResult
from kernel_foundry.domain.finding import Figure, Finding
from kernel_foundry.domain.language import Language

_NARROW_GAIN: Final = 2.0
"""Rate of 16-bit operations over that of float32, outside matrix units."""
_RATES: Final = {
    "float16": "fp16",
    "bfloat16": "bf16",
    "TF32": "tf32",
    "float8": "fp8_e4m3",
    "int8": "int8",
}
_LEAVES_OUT: Final = frozenset({
    "tril", "triu", "where", "masked_fill", "masked_scatter", "diag", "diag_embed", "diagonal",
    "eye", "one_hot", "block_diag", "scatter", "scatter_add", "index_put",
})  # fmt: skip
"""Operators that make zeros, so that products with their results need fewer operations."""


def arithmetic_check(
    workload: WorkloadAdmission,
    result: WorkloadResult,
    *,
    language: Language,
    peaks: Peaks,
    facts: ObjectFacts | None,
    redundancies: tuple[str, ...],
) -> tuple[Check, tuple[Finding, ...]]:
    """Return whether one call may have computed all that the graph does, and the suspicion if not.

    Args:
        workload: The graph and its operations.
        result: Timed.
        language: Of the device.
        peaks: Its measured rates.
        facts: What the kernels compute in; None: anything, such as library calls.
        redundancies: Work of the reference that its result does not need.
    """
    rate = fastest_rate(peaks, facts)
    needed_ns = 1e9 * workload.flops / rate
    upper_ns = result.call_bounds_ns[2] if result.call_bounds_ns else needed_ns
    figures = (
        Figure(name="call_ns", value=upper_ns),
        Figure(name="needed_ns", value=needed_ns),
        Figure(name="flops", value=float(workload.flops)),
        Figure(name="flops_per_second", value=rate),
    )
    note = ""
    is_beyond = upper_ns < needed_ns / backend_of(language).arithmetic_margin
    if is_beyond and leaves_out(workload.graph):
        note = "explained: masks and triangles of the reference leave out an unknown part"
    elif is_beyond and redundancies:
        note = f"explained: {redundancies[0]}"
    findings: tuple[Finding, ...] = ()
    if is_beyond and not note:
        message = (
            f"{workload.workload}: a call takes {1e-6 * upper_ns:.3g} ms, and the graph's "
            f"operations take {1e-6 * needed_ns:.3g} ms on the fastest unit that the kernels use"
        )
        hint = "Compute every term of the reference: some of the work seems to be left out."
        findings = (rule_finding("timing.arithmetic", message, hint, evidence=figures),)
    check = Check(
        kind=CheckKind.ARITHMETIC,
        result=check_result(findings[0]) if findings else CheckResult.PASSED,
        workload=workload.workload,
        figures=figures,
        note=note,
    )
    return check, findings


def fastest_rate(peaks: Peaks, facts: ObjectFacts | None) -> float:
    """Return the measured rate of the fastest unit that object code uses, in FLOP/s."""
    rates = {rate.format: rate.flops_per_second for rate in peaks.matrix_rates}
    if facts is None:
        return max((_NARROW_GAIN * peaks.flops_per_second, *rates.values()))
    gain = _NARROW_GAIN if facts.formats else 1.0
    used = [rates[_RATES[f]] for f in facts.matrix_formats if rates.get(_RATES.get(f, ""))]
    if facts.uses_matrix_units and not used:
        used = list(rates.values())
    return max((gain * peaks.flops_per_second, *used))


def leaves_out(graph: Sequence[GraphNode]) -> bool:
    """Return whether a reference makes zeros by itself, so that products need fewer operations."""
    return any(_leaves_out(node) for node in graph)


def _leaves_out(node: GraphNode) -> bool:
    names = node.op.split(".")
    if names[0] != "aten":
        return False
    name = names[1].rstrip("_")
    if name == "scaled_dot_product_attention":
        given = {k.name: k.value for k in node.keywords}
        is_causal = "True" in (given.get("is_causal", ""), *node.arguments[5:6])
        return is_causal or "%" in given.get("attn_mask", "".join(node.arguments[3:4]))
    return name in _LEAVES_OUT
