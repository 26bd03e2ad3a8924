"""What audits of timed calls come to in a verdict."""

from types import SimpleNamespace

import pytest

from evaluator_svc.messages.judge import FarElements, PrecisionReply
from evaluator_svc.pipeline.correctness.element_errors import assess_elements
from evaluator_svc.pipeline.correctness.precision import PrecisionResult, assess_precision
from evaluator_svc.pipeline.timing.timed_calls import assess_timed_calls
from evaluator_svc.policy import ObjectFacts
from kernel_foundry.domain.check import CheckKind, CheckResult
from kernel_foundry.domain.evaluation import EvaluationOutcome, PrecisionAudit, effective_bits
from kernel_foundry.domain.task import Tolerance


class Record:
    """What is told of a candidate."""

    def __init__(self):
        self.checks, self.findings, self.kept = [], [], []

    def add_checks(self, checks):
        self.checks += checks

    def add_findings(self, findings):
        self.findings += findings

    def keep_precision(self, workload, audit):
        self.kept.append((workload, audit.effective_bits))


def _judge(audited: PrecisionReply, workload: str, inputs: str) -> PrecisionResult:
    return assess_precision(
        audited,
        task=SimpleNamespace(least_bits=0.0, tf32=False),
        admission=SimpleNamespace(
            is_narrow=False, rounding="float32", tolerance=Tolerance(rtol=1e-4, atol=1e-5)
        ),
        workload=workload,
        facts=ObjectFacts(formats=("float16",)),
        inputs=inputs,
    )


def _audited(bits: float) -> PrecisionReply:
    rms = 2.0**-bits
    audit = PrecisionAudit(
        median_error=rms, p99_error=rms, max_error=rms, rms_error=rms, reference_rms_error=1e-8,
        effective_bits=effective_bits(rms), element_count=1,
    )  # fmt: skip
    return PrecisionReply(audit=audit)


CLOSE = PrecisionReply(note="timed calls: 23.0 bits agree", agreeing_bits=23.0)
FAR = FarElements(share=0.3, zero_share=0.3, is_repeated=True, element_count=1000, least=0.125)


def test_of_calls_that_pass_the_least_exact_is_told():
    record = Record()
    assert assess_timed_calls([CLOSE, _audited(17.0), CLOSE], "w", _judge, record) is None
    told = [(c.kind, c.result, c.note) for c in record.checks]
    assert told == [
        (CheckKind.ELEMENTS, CheckResult.PASSED, "timed calls"),
        (CheckKind.PRECISION, CheckResult.PASSED, "timed calls"),
    ]
    assert record.kept == [("w", pytest.approx(17.0))]


@pytest.mark.parametrize(
    ("wrong", "kind", "words"),
    [
        (_audited(11.0), CheckKind.PRECISION, "computes in float16"),
        (PrecisionReply(audit=_audited(20.0).audit, far=FAR), CheckKind.ELEMENTS, "are zero"),
    ],
    ids=["fewer bits", "work left out"],
)
def test_one_call_that_is_not_computed_as_the_others_is_refused(wrong, kind, words):
    record = Record()
    failure = assess_timed_calls([CLOSE, CLOSE, wrong], "w", _judge, record)
    assert failure is not None
    assert failure.outcome is EvaluationOutcome.WRONG_RESULT
    assert words in failure.findings[0].message
    assert "w (timed calls)" in failure.findings[0].message
    assert [c.kind for c in record.checks if c.result is CheckResult.FAILED] == [kind]


def test_elements_that_nobody_could_look_at_have_not_passed():
    note = "no float64 result: the reference wants float32"
    check, failure = assess_elements(PrecisionReply(note=note), "w")
    assert (check.result, check.note, failure) == (CheckResult.SKIPPED, note, None)
