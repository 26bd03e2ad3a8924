"""The file for KernelBench, loaded and called as KernelBench does."""

from typing import Any

import pytest
import torch

from kernel_foundry.exported_form import FormEntry
from kernel_foundry.sdk.export.kernelbench_file import kernelbench_file
from kernel_foundry.sdk.export.winner import Winner
from tests.export.conftest import REFERENCE, tried

pytestmark = [pytest.mark.sycl, pytest.mark.slow]

ARGUMENTS = (48, 40, 2.0)


@pytest.fixture(scope="module")
def names(winner: Winner) -> dict[str, Any]:
    """What the reference and the file bind: KernelBench runs both in one namespace, as texts."""
    found: dict[str, Any] = {}
    exec(compile(REFERENCE, "<string>", "exec"), found)
    exec(compile(kernelbench_file([winner], "fast_new"), "<string>", "exec"), found)
    found["reset_stats"]()
    return found


def made(names: dict[str, Any], kind: str) -> Any:
    torch.manual_seed(42)
    return names[kind](*names["get_init_inputs"]())


@pytest.mark.parametrize("has_gradients", [False, True])
def test_model_new_computes_what_model_does(names: dict[str, Any], has_gradients: bool) -> None:
    model, new = made(names, "Model"), made(names, "ModelNew")
    (x,) = names["get_inputs"]()
    before = names["stats"]()["kernel"]
    with torch.set_grad_enabled(has_gradients):
        torch.testing.assert_close(new(x), model(x), rtol=1e-4, atol=1e-4)
    assert names["stats"]()["kernel"] == before + 1


@pytest.mark.parametrize("has_gradients", [False, True])
def test_the_reference_never_runs_in_place_of_a_kernel(
    names: dict[str, Any], has_gradients: bool
) -> None:
    new = made(names, "ModelNew")
    before = names["stats"]()
    with (
        torch.set_grad_enabled(has_gradients),
        pytest.raises(names["NoKernelError"], match="rows = 65 was not judged"),
    ):
        new(torch.randn(65, 48))
    assert names["stats"]() == before


def test_model_new_is_what_is_tried(winner: Winner) -> None:
    text = kernelbench_file([winner], "fast_new")
    report = tried(text, winner, FormEntry.MODEL_NEW)
    assert [result.failure for result in report.results] == ["", ""]
    assert report.results[0].call_ns > 0
    wrong = text.replace("**{'factor': factor,", "**{'factor': factor + 1,")
    failures = [result.failure for result in tried(wrong, winner, FormEntry.MODEL_NEW).results]
    assert ["wrong by" in failure for failure in failures] == [True, True]
