"""What is said of a crash: kernels, and tensors with sizes where models may know them."""

from evaluator_svc.messages.draw import TensorSlot
from evaluator_svc.messages.locked import CandidateFailure
from evaluator_svc.pipeline.correctness.crash_place import with_launches
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import Finding, FindingKind, Severity

_SLOTS = tuple(
    TensorSlot(name=name, role=role, dtype="float32", shape=(4, 8), size_bytes=128, offsets=(0,))
    for name, role in (("x", "input"), ("out", "output"))
)


def _failure(outcome: EvaluationOutcome) -> CandidateFailure:
    finding = Finding(kind=FindingKind.ILLEGAL_ACCESS, severity=Severity.ERROR, message="it died")
    return CandidateFailure(outcome=outcome, findings=(finding,))


def _said(kernels: tuple[str, ...], *, shows_sizes: bool) -> str:
    crashed = _failure(EvaluationOutcome.CRASHED)
    return with_launches(crashed, kernels, _SLOTS, shows_sizes=shows_sizes).findings[0].message


def test_a_crash_names_kernels_and_tensors() -> None:
    assert _said(("relu",), shows_sizes=True) == (
        "it died. Kernels, in order: relu; tensors: x float32 (4, 8), out float32 (4, 8)"
    )
    many = tuple(f"k{n}" for n in range(14))
    assert "k11 and 2 more; tensors" in _said(many, shows_sizes=True)


def test_sizes_that_models_must_not_know_are_left_out() -> None:
    assert _said(("relu",), shows_sizes=False).endswith("tensors: x, out")


def test_other_failures_stay_as_they_are() -> None:
    wrong = _failure(EvaluationOutcome.WRONG_RESULT)
    assert with_launches(wrong, ("relu",), _SLOTS, shows_sizes=True) is wrong
    crashed = _failure(EvaluationOutcome.CRASHED)
    assert with_launches(crashed, (), _SLOTS, shows_sizes=True) is crashed
