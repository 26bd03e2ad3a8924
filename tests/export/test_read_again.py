"""What we export for other harnesses, our own reader of their kernels takes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from evaluator_svc.evaluator import LocalEvaluator
from evaluator_svc.requests.request_limits import check_foreign
from kernel_foundry.domain.check import Trust
from kernel_foundry.domain.foreign import ForeignForm, ForeignRequest, ForeignSource
from kernel_foundry.domain.request import EvaluationLimits
from kernel_foundry.sdk.export.targets import TARGETS
from kernel_foundry.sdk.export.winner import Winner
from kernel_foundry.sdk.foreign_file import read_foreign

pytestmark = [pytest.mark.sycl, pytest.mark.slow]


def _read(winner: Winner, target: str, folder: Path) -> ForeignSource:
    form = TARGETS[target]
    text = form.source([winner], "fast")
    file = folder / form.file.format(task="t")
    file.write_text(form.packed(text, winner, module="fast", problem="product"))
    return read_foreign(file)


@pytest.mark.parametrize(
    ("target", "form", "entry"),
    [
        ("kernelbench", ForeignForm.MODEL_NEW, "ModelNew"),
        ("popcorn", ForeignForm.CUSTOM_KERNEL, "custom_kernel"),
        ("flashinfer", ForeignForm.FUNCTION_INTO_OUTPUTS, "run"),
        ("sol", ForeignForm.FUNCTION_INTO_OUTPUTS, "run"),
    ],
)
def test_an_export_is_a_foreign_kernel(
    plain_gpu_winner: Winner, tmp_path: Path, target: str, form: ForeignForm, entry: str
) -> None:
    source = _read(plain_gpu_winner, target, tmp_path)
    assert (source.form, source.entry_name) == (form, entry)
    check_foreign(ForeignRequest(task=plain_gpu_winner.record.task, device="", source=source))


async def test_an_export_is_judged_as_a_foreign_kernel(
    winner: Winner, local_evaluator: Callable[[str], LocalEvaluator], tmp_path: Path
) -> None:
    source = _read(winner, "kernelbench", tmp_path)
    limits = EvaluationLimits(build_seconds=100.0, run_seconds=100.0, timing_seconds=0.05)
    request = ForeignRequest(task=winner.record.task, device="", source=source, limits=limits)
    verdict = await local_evaluator("sycl").evaluate_foreign(request)
    assert (verdict.passed, verdict.trust) == (True, Trust.FOREIGN), verdict.findings
