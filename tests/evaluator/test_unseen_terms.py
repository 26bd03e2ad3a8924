"""Narrow products are suspect where no errors can show them, and split ones never are."""

import dataclasses

import pytest

from evaluator_svc.messages.judge import PrecisionReply
from evaluator_svc.pipeline.correctness.precision import PrecisionResult, assess_precision
from evaluator_svc.policy import ObjectFacts
from kernel_foundry.domain.admission import (
    Admission,
    Distribution,
    GraphNode,
    NamedTensor,
    TensorRole,
    ValueRange,
)
from kernel_foundry.domain.check import CheckResult
from kernel_foundry.domain.evaluation import PrecisionAudit
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.task import Task, Tolerance
from tests.domain_values import workload_admission
from tests.judge.judge_tasks import DEVICE

TASK = Task(name="made", reference="")
EXACT = PrecisionReply(
    audit=PrecisionAudit(
        median_error=1e-8,
        p99_error=1e-7,
        max_error=1e-7,
        rms_error=1e-7,
        reference_rms_error=1e-7,
        effective_bits=23.0,
        element_count=1,
    )
)
UNKNOWN = PrecisionReply(note="the outputs are whole numbers")
SIGNS = ValueRange(distribution=Distribution.SIGNS, factor=16.0, is_binding=True)

SINGLE = ObjectFacts(formats=("TF32",), uses_matrix_units=True, matrix_formats=("TF32",))
SPLIT = dataclasses.replace(SINGLE, products_of_a_step=3)
HALF = ObjectFacts(formats=("float16",))
ROUGH = ObjectFacts(rough_functions=("tanh.approx",))


def admission(
    *, outputs: int, ranges: tuple[ValueRange, ...] = (SIGNS,), rounding: str = "float32"
) -> Admission:
    """Return the admission of a product of 4096 elements whose last operator leaves `outputs`."""
    product = GraphNode(
        name="matmul",
        op="aten.matmul.default",
        arguments=("%a", "%b"),
        keywords=(),
        dtype="float32",
        shape=(64, 64),
    )
    out = NamedTensor(name="out", role=TensorRole.OUTPUT, dtype="float32", shape=(outputs,))
    workload = workload_admission("w", tensors=(out,), graph=(product,), value_ranges=ranges)
    return Admission(
        task=TASK.digest,
        device=dataclasses.replace(DEVICE, language=Language.CUDA),
        workloads=(workload,),
        tolerance=Tolerance(rtol=5e-5, atol=5e-5),
        rounding=rounding,
    )


def judged(
    audited: PrecisionReply, seen: Admission, facts: ObjectFacts, task: Task = TASK
) -> PrecisionResult:
    return assess_precision(audited, task=task, admission=seen, workload="w", facts=facts)


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        pytest.param(admission(outputs=1), "4096 products are averaged into 1", id="a mean"),
        pytest.param(admission(outputs=4096, ranges=()), "no inputs on which sums", id="positive"),
    ],
)
def test_narrow_products_are_suspect_where_their_errors_cannot_show(
    seen: Admission, reason: str
) -> None:
    found = judged(EXACT, seen, SINGLE)
    assert (found.check.result, found.is_refused) == (CheckResult.SUSPECT, False)
    assert [f.kind for f in found.findings] == [FindingKind.SUSPICION]
    assert reason in found.findings[0].message


def _with_bits(bits: float, **fields: bool | float) -> PrecisionReply:
    assert EXACT.audit is not None
    audit = dataclasses.replace(EXACT.audit, effective_bits=bits, rms_error=2.0**-bits)
    return PrecisionReply(audit=audit, **fields)


@pytest.mark.parametrize(
    ("bits", "is_by_element", "is_suspect"),
    [(16.9, True, True), (16.9, False, False), (19.0, True, False), (12.0, False, True)],
)
def test_functions_of_single_elements_have_more_bits_than_sums(
    bits: float, is_by_element: bool, is_suspect: bool
) -> None:
    audited = _with_bits(bits, is_by_element=is_by_element)
    found = judged(audited, admission(outputs=4096), ObjectFacts())
    assert (found.check.result is CheckResult.SUSPECT) is is_suspect
    assert not found.is_refused


def test_results_that_are_not_rounded_to_nearest_are_suspect() -> None:
    seen = admission(outputs=4096, rounding="bfloat16")
    found = judged(_with_bits(9.0, rounding_bias=-0.5), seen, ObjectFacts())
    assert (found.check.result, found.is_refused) == (CheckResult.SUSPECT, False)
    assert "0.50 units of the last place closer to zero" in found.findings[0].message
    assert judged(_with_bits(9.0, rounding_bias=-0.1), seen, ObjectFacts()).findings == ()


@pytest.mark.parametrize(
    ("seen", "facts"),
    [
        pytest.param(admission(outputs=1), SPLIT, id="split products"),
        pytest.param(admission(outputs=1), HALF, id="conversions, without matrix units"),
        pytest.param(admission(outputs=1, rounding="float16"), SINGLE, id="a task of 16 bits"),
        pytest.param(admission(outputs=4096), SINGLE, id="errors that show"),
        pytest.param(
            dataclasses.replace(admission(outputs=4096, ranges=()), products_cancel=True),
            SINGLE,
            id="of inputs that have both signs as they are",
        ),
        pytest.param(
            admission(outputs=1),
            ObjectFacts(uses_matrix_units=True, matrix_formats=("float64",)),
            id="float64 on matrix units",
        ),
    ],
)
def test_honest_products_are_not(seen: Admission, facts: ObjectFacts) -> None:
    found = judged(EXACT, seen, facts)
    assert (found.check.result, found.findings) == (CheckResult.PASSED, ())


def test_tf32_is_no_narrow_format_where_it_is_allowed() -> None:
    allowed = dataclasses.replace(TASK, tf32=True)
    for audited, passed in ((EXACT, CheckResult.PASSED), (UNKNOWN, CheckResult.SKIPPED)):
        assert judged(audited, admission(outputs=1), SINGLE, allowed).check.result is passed


@pytest.mark.parametrize(
    ("facts", "rounding", "result"),
    [
        (HALF, "float32", CheckResult.SUSPECT),
        (ROUGH, "float32", CheckResult.SUSPECT),
        (SINGLE, "float32", CheckResult.SUSPECT),
        (SPLIT, "float32", CheckResult.SKIPPED),
        (ObjectFacts(), "float32", CheckResult.SKIPPED),
        (HALF, "float16", CheckResult.SKIPPED),
    ],
)
def test_outputs_without_errors_are_suspect_by_their_object_code(
    facts: ObjectFacts, rounding: str, result: CheckResult
) -> None:
    found = judged(UNKNOWN, admission(outputs=1, rounding=rounding), facts)
    assert found.check.result is result
    assert bool(found.findings) == (result is CheckResult.SUSPECT)


def test_bits_that_agree_need_no_other_evidence() -> None:
    agreed = PrecisionReply(note="23.0 bits agree", agreeing_bits=23.0)
    assert judged(agreed, admission(outputs=1), HALF).check.result is CheckResult.PASSED
