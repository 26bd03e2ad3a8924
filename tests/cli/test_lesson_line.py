"""A wrong result ends with a lesson that fits well, and with none that does not."""

from pathlib import Path

import pytest

from kernel_foundry.cli.lesson_line import lesson_line
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.finding import Finding, FindingKind, Severity
from kernel_foundry.sdk.client import connect
from tests.cli.conftest import CANDIDATE


def _verdict(outcome: EvaluationOutcome, kind: FindingKind, message: str) -> Evaluation:
    finding = Finding(kind=kind, severity=Severity.ERROR, message=message)
    return Evaluation(
        candidate="c", task="t", device="sycl:0", outcome=outcome, findings=(finding,)
    )


def test_a_lesson_is_shown_where_it_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNEL_FOUNDRY_DATA_DIR", str(tmp_path))
    wrong = EvaluationOutcome.WRONG_RESULT
    nan = _verdict(wrong, FindingKind.NOT_A_NUMBER, "out: 12 elements are NaN or infinite")
    with connect() as foundry:
        line = lesson_line(foundry, nan, CANDIDATE)
        assert line.startswith("lesson ")
        assert "NaN" in line
        odd = _verdict(wrong, FindingKind.MISMATCH, "vienna waits for you")
        assert lesson_line(foundry, odd, CANDIDATE) == ""
        refused = _verdict(EvaluationOutcome.REJECTED, FindingKind.NOT_A_NUMBER, "NaN")
        assert lesson_line(foundry, refused, CANDIDATE) == ""
