"""What `kfoundry admit` prints of a tolerance's origin and of redundant work."""

import io

from rich.console import Console

from kernel_foundry.cli.admit import _show
from kernel_foundry.domain.admission import Admission, ToleranceDerivation
from kernel_foundry.domain.plain import from_json, to_json
from kernel_foundry.domain.task import Tolerance
from tests.judge.judge_tasks import DEVICE

ADMISSION = Admission(
    task="t",
    device=DEVICE,
    workloads=(),
    tolerance=Tolerance(rtol=1.2e-6, atol=1.2e-6),
    derivation=ToleranceDerivation(
        source="measured",
        noise=3e-8,
        safety=8.0,
        floor=5e-5,
        ceiling=5e-3,
        tf32_noise=2e-4,
        tightened_by="a copy of input 'x'",
        workload="rows=3",
    ),
    redundancies=("mul (node 'mul') is never used",),
)


def test_the_derivation_and_redundant_work_are_shown_and_kept() -> None:
    shown = io.StringIO()
    _show(Console(file=shown, width=1000), ADMISSION)
    text = shown.getvalue()

    assert "redundant: mul (node 'mul') is never used" in text
    assert "rounding noise 3.0e-08 of rows=3 times 8, at least 5e-05 and at most 5e-03" in text
    assert "TF32 costs 2.0e-04; tightened until a copy of input 'x' fails" in text
    assert from_json(Admission, to_json(ADMISSION)) == ADMISSION
