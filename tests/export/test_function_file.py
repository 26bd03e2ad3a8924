"""Files whose entry is a function of inputs: in use, and what they refuse."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch

from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.exported_form import FormEntry
from kernel_foundry.sdk.export.function_file import check_gpu, function_file, gpu_model
from kernel_foundry.sdk.export.winner import Winner
from tests.export.conftest import imported, tried

pytestmark = [pytest.mark.sycl, pytest.mark.slow]


@pytest.fixture(scope="module")
def text(plain_winner: Winner) -> str:
    return function_file([plain_winner], "fast_plain", usage="")


@pytest.fixture(scope="module")
def fast(text: str, tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return imported(text, tmp_path_factory.mktemp("function"), "fast_plain")


def pair(rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(rows, 64), torch.randn(rows, 64)


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.empty(8, 64),
        lambda: torch.empty(8 * 64 + 1)[1:].view(8, 64),  # computed elsewhere, and copied
        lambda: torch.empty(64, 8).t(),
    ],
)
def test_run_writes_the_outputs_where_they_are(
    fast: ModuleType, make: Callable[[], torch.Tensor]
) -> None:
    x, y = pair(8)
    out = make()
    fast.reset_stats()
    assert fast.run(x, y, out) is None
    torch.testing.assert_close(out, x * y + 1.0)
    assert fast.stats()["kernel"] == 1


def test_an_output_may_lie_in_an_input(fast: ModuleType) -> None:
    x, y = pair(8)
    expected = x * y + 1.0
    fast.run(x, y, x)
    torch.testing.assert_close(x, expected)


def test_sizes_that_were_not_judged_are_the_references(fast: ModuleType) -> None:
    x, y = pair(9)
    out = torch.empty(9, 64)
    fast.reset_stats()
    fast.run(x, y, out)
    torch.testing.assert_close(out, x * y + 1.0)
    assert "rows = 9 was not judged" in fast.stats()["last_reason"]


def test_what_does_not_fit_is_an_error(fast: ModuleType) -> None:
    x, y = pair(8)
    with pytest.raises(ValueError, match=r"an output is torch.float64 of \(8, 64\)"):
        fast.run(x, y, torch.empty(8, 64, dtype=torch.float64))
    with pytest.raises(TypeError, match="takes 2 tensors, not 1"):
        fast.custom_kernel((x,))
    with pytest.raises(ValueError, match="was judged with"):
        fast.custom_kernel((x, y, 2.0))


def test_custom_kernel_takes_inputs_with_or_without_outputs(fast: ModuleType) -> None:
    x, y = pair(5)
    fast.reset_stats()
    torch.testing.assert_close(fast.custom_kernel((x, y)), x * y + 1.0)
    out = torch.empty(5, 64)
    assert fast.custom_kernel((x, y, out)) is out
    torch.testing.assert_close(out, x * y + 1.0)
    assert fast.stats()["kernel"] == 2


@pytest.mark.parametrize("entry", [FormEntry.RUN, FormEntry.CUSTOM_KERNEL])
def test_the_function_is_what_is_tried(text: str, plain_winner: Winner, entry: FormEntry) -> None:
    report = tried(text, plain_winner, entry)
    assert [result.failure for result in report.results] == ["", ""]
    wrong = text.replace("counts.add_kernel()\n", "counts.add_kernel(); results[0].zero_()\n")
    failures = [result.failure for result in tried(wrong, plain_winner, entry).results]
    assert ["wrong by" in failure for failure in failures] == [True, True]


@pytest.fixture(scope="module")
def weighted_text(winner: Winner) -> str:
    return function_file([winner], "fast_weighted", usage="")


def test_weights_follow_the_inputs(weighted_text: str, tmp_path: Path) -> None:
    assert "Weights follow the inputs: linear.weight, linear.bias." in weighted_text
    fast = imported(weighted_text, tmp_path, "fast_weighted")
    linear = torch.nn.Linear(48, 40)
    weights = (linear.weight, linear.bias)
    for rows in (64, 17, 65):  # judged, between, and the reference's
        x, out = torch.randn(rows, 48), torch.empty(rows, 40)
        expected = linear(x).detach() * 2.0
        assert fast.run(x, *weights, out) is None
        torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)
        assert fast.custom_kernel((x, *weights, out)) is out
        found = fast.custom_kernel((x, *weights))
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    assert (fast.stats()["kernel"], fast.stats()["reference"]) == (6, 3)
    with torch.no_grad():
        linear.weight.mul_(3.0)
    fast.run(x[:64], *weights, out[:64])
    torch.testing.assert_close(out[:64], linear(x[:64]) * 2.0, rtol=1e-5, atol=1e-5)
    with pytest.raises(TypeError, match="takes 3 tensors, not 2"):
        fast.custom_kernel((x, linear.weight))


@pytest.mark.parametrize("entry", [FormEntry.RUN, FormEntry.CUSTOM_KERNEL])
def test_a_function_of_weights_is_tried(
    weighted_text: str, winner: Winner, entry: FormEntry
) -> None:
    report = tried(weighted_text, winner, entry)
    assert [result.failure for result in report.results] == ["", ""]


def test_kernels_for_the_cpu_are_refused(plain_winner: Winner) -> None:
    with pytest.raises(InvalidArgumentError, match="SOL runs on NVIDIA GPUs"):
        check_gpu([plain_winner], "SOL")


@pytest.mark.parametrize(
    ("device", "model"),
    [
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("NVIDIA L4", "L4"),
        ("Tesla T4", "T4"),
        ("NVIDIA GB200", "GB200"),
        ("NVIDIA RTX A6000", "A6000"),
        ("Some GPU", "Some_GPU"),
    ],
)
def test_the_model_of_a_gpu_is_read_from_its_name(device: str, model: str) -> None:
    assert gpu_model(device) == model
