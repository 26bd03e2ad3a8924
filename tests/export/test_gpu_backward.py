"""A found backward pass on a GPU."""

from collections.abc import Callable
from types import ModuleType

import pytest
import torch

from evaluator_svc.evaluator import LocalEvaluator
from evaluator_svc.exported_form.start import try_exported_form
from evaluator_svc.settings import EvaluatorSettings
from kernel_foundry.exported_form import FormRequest
from kernel_foundry.sdk.export.backward import backward_pass
from kernel_foundry.sdk.export.export import form_workloads
from kernel_foundry.sdk.export.torch_file import torch_file
from kernel_foundry.sdk.export.winner import Winner
from tests.export.backward_case import CUDA_BACKWARD, CUDA_FORWARD, check, judged_pair
from tests.export.conftest import imported

pytestmark = [pytest.mark.gpu, pytest.mark.slow]


@pytest.fixture(scope="module")
def winners(
    local_evaluator: Callable[[str], LocalEvaluator], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Winner, Winner]:
    folder = tmp_path_factory.mktemp("tasks")
    return judged_pair(local_evaluator("cuda"), folder, CUDA_FORWARD, CUDA_BACKWARD, "cuda")


@pytest.fixture(scope="module")
def text(winners: tuple[Winner, Winner]) -> str:
    return torch_file([winners[0]], "fast_tanh", backward=backward_pass(winners[0], [winners[1]]))


@pytest.fixture(scope="module")
def fast(text: str, tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return imported(text, tmp_path_factory.mktemp("backward"), "fast_tanh")


def test_gradients_are_computed_by_kernels(fast: ModuleType) -> None:
    """On autograd's own thread, in the stream of the forward pass."""
    model = fast.Module(96).cuda()
    for stream in (torch.cuda.current_stream(), torch.cuda.Stream()):
        with torch.cuda.stream(stream):
            fast.reset_stats()
            check(fast, model, torch.randn(16, 96, device="cuda", requires_grad=True))
        torch.cuda.synchronize()
    fast.reset_stats()
    x = torch.randn(64, 96, device="cuda", requires_grad=True)
    check(fast, model, x, "rows = 64 was not judged")


def test_both_operators_are_good_citizens(fast: ModuleType) -> None:
    model = fast.Module(96).cuda()
    x = torch.randn(8, 96, device="cuda", requires_grad=True)
    torch.library.opcheck(fast.operator, (x, model.weight, model._kf.kind))


def test_a_training_step_is_captured_in_a_graph(fast: ModuleType) -> None:
    model = fast.Module(96).cuda()
    x, graph = torch.randn(16, 96, device="cuda"), torch.cuda.CUDAGraph()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            model.weight.grad = None
            model(x).square().sum().backward()
    torch.cuda.synchronize()
    model.weight.grad = None
    with torch.cuda.graph(graph, stream=stream):
        model(x).square().sum().backward()
    x.mul_(0.5)
    graph.replay()
    wanted = 2 * model.weight * torch.tanh(x).square().sum(0)
    torch.testing.assert_close(model.weight.grad, wanted, rtol=1e-4, atol=1e-4)


def test_it_is_tried_on_all_its_workloads(text: str, winners: tuple[Winner, Winner]) -> None:
    forward, gradient = winners
    request = FormRequest(
        text=text,
        device="cuda:0",
        is_scaled=True,
        workloads=form_workloads([forward]),
        backward=form_workloads([gradient], forward.record.task.reference),
    )
    report = try_exported_form(request, EvaluatorSettings())
    assert [r.failure for r in (*report.results, *report.backward)] == [""] * 4
    assert report.backward[0].kernels_ns is not None
