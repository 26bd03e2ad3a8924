"""What goes wrong on a GPU: the result is right by the reference, and the file says why."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from kernel_foundry.sdk.export.torch_file import torch_file
from kernel_foundry.sdk.export.winner import Winner
from tests.export.conftest import imported
from tests.export.torch_alone import call_alone, required_by, site_of

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

ARGUMENTS = (48, 40, 2.0)


@pytest.fixture(scope="module")
def fast(gpu_winner: Winner, tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    folder = tmp_path_factory.mktemp("gpu_faults")
    return imported(torch_file([gpu_winner], "fast_faults"), folder, "fast_faults")


def check(fast: ModuleType, model: Any, x: torch.Tensor, reason: str = "") -> None:
    """The result is right, by the kernels or, for a reason, by the reference."""
    fast.reset_stats()
    with torch.no_grad():
        torch.testing.assert_close(model(x), model.linear(x) * 2.0, rtol=1e-4, atol=1e-4)
    stats = fast.stats()
    assert (stats["kernel"], stats["reference"]) == ((0, 1) if reason else (1, 0)), stats
    assert reason in stats["last_reason"]


@pytest.mark.parametrize(
    ("x", "reason"),
    [
        (lambda: torch.randn(65, 48, device="cuda"), "rows = 65 was not judged"),
        (lambda: torch.randn(0, 48, device="cuda"), "rows = 0"),
        (lambda: torch.randn(48, 8, device="cuda").t(), "not contiguous"),
        (lambda: torch.randn(8 * 48 + 1, device="cuda")[1:].view(8, 48), "begin at a multiple"),
    ],
    ids=["more rows", "empty", "transposed", "misplaced"],
)
def test_the_reference_runs_on_everything_else(
    fast: ModuleType, x: Callable[[], torch.Tensor], reason: str
) -> None:
    check(fast, fast.Module(*ARGUMENTS).cuda(), x(), reason)


def test_more_than_two_to_the_31_elements_are_the_references(fast: ModuleType) -> None:
    model = fast.Module(*ARGUMENTS).cuda()
    x = torch.zeros((1 << 31) // 48 + 1, 48, device="cuda")
    x[-3:].fill_(1.0)
    fast.reset_stats()
    with torch.no_grad():
        result = model(x)
        for part in (slice(3), slice(-6, None)):
            torch.testing.assert_close(result[part], model.linear(x[part]) * 2.0)
    assert fast.stats()["kernel"] == 0
    assert "was not judged" in fast.stats()["last_reason"]


def test_another_type_is_the_references(fast: ModuleType) -> None:
    x = torch.randn(8, 48, device="cuda", dtype=torch.float64)
    check(fast, fast.Module(*ARGUMENTS).cuda().double(), x, "float64")


def test_an_input_on_another_device_fails_as_the_reference_does(fast: ModuleType) -> None:
    with pytest.raises(RuntimeError, match="device"):
        fast.Module(*ARGUMENTS).cuda()(torch.randn(8, 48))


def test_kernels_for_another_architecture_do_not_run(gpu_winner: Winner, tmp_path: Path) -> None:
    text = torch_file([gpu_winner], "fast_other")
    own = gpu_winner.admission.device.architecture
    other = text.replace(f"ARCHITECTURE = '{own}'", "ARCHITECTURE = 'sm_52'")
    assert other != text
    file = imported(other, tmp_path, "fast_other")
    x = torch.randn(8, 48, device="cuda")
    check(file, file.Module(*ARGUMENTS).cuda(), x, "kernels are for sm_52, and this GPU is")


def test_object_code_that_the_driver_refuses_does_not_run(
    gpu_winner: Winner, tmp_path: Path
) -> None:
    file = imported(torch_file([gpu_winner], "fast_broken"), tmp_path, "fast_broken")
    code = b"\x7fELF" + bytes(1 << 16)
    file.zlib = type("Broken", (), {"decompress": staticmethod(lambda _: code)})
    x = torch.randn(8, 48, device="cuda")
    check(file, file.Module(*ARGUMENTS).cuda(), x, "cuModuleLoadDataEx")


def test_each_device_runs_its_own_code(fast: ModuleType) -> None:
    """One device is enough to run, two to show that the current one does not matter."""
    devices = [torch.device("cuda", index) for index in range(torch.cuda.device_count())]
    for device in devices:
        model = fast.Module(*ARGUMENTS).to(device)
        for current in devices:
            with torch.cuda.device(current):
                check(fast, model, torch.randn(8, 48, device=device))


def test_a_gpu_needs_torch_and_a_driver_alone(gpu_winner: Winner, tmp_path: Path) -> None:
    tmp_path.joinpath("fast_alone.py").write_text(torch_file([gpu_winner], "fast_alone"))
    names = required_by("torch")
    told = call_alone(
        {
            "paths": [str(site_of(names, tmp_path / "torch")), str(tmp_path)],
            "module": "fast_alone",
            "arguments": ARGUMENTS,
            "inputs": [[8, 48]],
            "device": "cuda",
        }
    )
    assert set(told["distributions"]) == names
    (call,) = told["calls"]
    assert call["kernel"] == 1, call
    assert call["error"] < 1e-4
