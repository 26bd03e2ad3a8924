"""A time without room for the reference's operations is suspect, unless the task says why."""

import dataclasses

import pytest

from evaluator_svc.pipeline.timing.arithmetic_check import arithmetic_check, fastest_rate
from evaluator_svc.policy import ObjectFacts
from kernel_foundry.domain.admission import GraphKeyword, GraphNode, WorkloadAdmission
from kernel_foundry.domain.check import Check, CheckResult
from kernel_foundry.domain.device import MatrixRate, Peaks
from kernel_foundry.domain.evaluation import WorkloadResult
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.language import Language
from tests.domain_values import timing_of, workload_admission

_PEAKS = Peaks(
    bandwidth_bytes_per_second=1e12,
    cache_bandwidth_bytes_per_second=1e13,
    flops_per_second=1e12,
    launch_ns=1e3,
    read_bandwidth_bytes_per_second=1e12,
    matrix_rates=(
        MatrixRate(format="bf16", flops_per_second=10e12),
        MatrixRate(format="tf32", flops_per_second=5e12),
    ),
)
_PLAIN = ObjectFacts()
_ON_BF16 = ObjectFacts(formats=("bfloat16",), uses_matrix_units=True, matrix_formats=("bfloat16",))


def _node(op: str, *arguments: str, **keywords: str) -> GraphNode:
    return GraphNode(
        name=op,
        op=f"aten.{op}",
        arguments=arguments,
        keywords=tuple(GraphKeyword(name=n, value=v) for n, v in keywords.items()),
        dtype="float32",
        shape=(4,),
    )


def _workload(*nodes: GraphNode) -> WorkloadAdmission:
    """Return a workload of 1e9 operations: a millisecond at the rate of FMA."""
    return workload_admission(
        graph=(_node("matmul.default", "%a", "%b"), *nodes),
        flops=10**9,
        arithmetic_estimate_ns=1e6,
    )


def _took(ns: float) -> WorkloadResult:
    return WorkloadResult(workload="default", timing=timing_of(ns))


def _checked(
    ns: float,
    *nodes: GraphNode,
    facts: ObjectFacts | None = _PLAIN,
    language: Language = Language.CUDA,
    redundancies: tuple[str, ...] = (),
) -> Check:
    check, findings = arithmetic_check(
        _workload(*nodes),
        _took(ns),
        language=language,
        peaks=_PEAKS,
        facts=facts,
        redundancies=redundancies,
    )
    assert bool(findings) is (check.result is CheckResult.SUSPECT)
    assert all(f.kind is FindingKind.SUSPICION for f in findings)
    return check


def test_what_is_within_the_margin_is_believed() -> None:
    assert _checked(0.85e6).result is CheckResult.PASSED
    assert _checked(0.55e6, language=Language.SYCL).result is CheckResult.PASSED


@pytest.mark.parametrize(("language", "ns"), [(Language.CUDA, 0.75e6), (Language.SYCL, 0.45e6)])
def test_what_is_beyond_it_is_suspect(language: Language, ns: float) -> None:
    assert _checked(ns, language=language).result is CheckResult.SUSPECT


def test_the_units_of_the_object_code_count() -> None:
    """Matrix units explain a time that float32 arithmetic does not."""
    assert _checked(0.1e6, facts=_ON_BF16).result is CheckResult.PASSED
    assert _checked(0.07e6, facts=_ON_BF16).result is CheckResult.SUSPECT
    assert _checked(0.1e6, facts=None).result is CheckResult.PASSED


def test_rates_of_what_the_object_code_uses() -> None:
    half = ObjectFacts(formats=("float16",))
    unknown = dataclasses.replace(_ON_BF16, matrix_formats=())
    assert [fastest_rate(_PEAKS, f) for f in (_PLAIN, half, _ON_BF16, unknown, None)] == [
        1e12,
        2e12,
        10e12,
        10e12,
        10e12,
    ]


@pytest.mark.parametrize(
    "node",
    [
        _node("tril.default", "%a"),
        _node("where.self", "%a", "%b", "0.0"),
        _node("scaled_dot_product_attention.default", "%q", "%k", "%v", is_causal="True"),
        _node("scaled_dot_product_attention.default", "%q", "%k", "%v", "%mask"),
    ],
)
def test_a_graph_with_masks_explains_it(node: GraphNode) -> None:
    check = _checked(0.1e6, node)
    assert check.result is CheckResult.PASSED
    assert "masks" in check.note


def test_attention_without_a_mask_explains_nothing() -> None:
    attention = _node("scaled_dot_product_attention.default", "%q", "%k", "%v")
    assert _checked(0.1e6, attention).result is CheckResult.SUSPECT


def test_redundant_work_of_the_reference_explains_it() -> None:
    check = _checked(0.1e6, redundancies=("a product is only added up",))
    assert check.result is CheckResult.PASSED
    assert "only added up" in check.note
