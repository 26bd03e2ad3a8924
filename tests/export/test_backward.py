"""An exported file with a found backward pass: gradients by kernels, and by the reference."""

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import nn

from evaluator_svc.evaluator import LocalEvaluator
from evaluator_svc.exported_form.start import try_exported_form
from evaluator_svc.settings import EvaluatorSettings
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.evidence.record import read_records
from kernel_foundry.exported_form import FormReport, FormRequest
from kernel_foundry.sdk.export.backward import BackwardPass, backward_pass
from kernel_foundry.sdk.export.export import form_workloads
from kernel_foundry.sdk.export.torch_file import torch_file
from kernel_foundry.sdk.export.winner import Winner
from tests.export.backward_case import BACKWARD, FORWARD, check, gradients, judged_pair
from tests.export.conftest import imported

pytestmark = [pytest.mark.sycl, pytest.mark.slow]


@pytest.fixture(scope="module")
def winners(
    local_evaluator: Callable[[str], LocalEvaluator], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Winner, Winner]:
    """Of a module, and of its gradient."""
    folder = tmp_path_factory.mktemp("tasks")
    return judged_pair(local_evaluator("sycl"), folder, FORWARD, BACKWARD, "sycl")


@pytest.fixture(scope="module")
def backward(winners: tuple[Winner, Winner]) -> BackwardPass:
    return backward_pass(winners[0], [winners[1]])


@pytest.fixture(scope="module")
def text(winners: tuple[Winner, Winner], backward: BackwardPass) -> str:
    return torch_file([winners[0]], "fast_tanh", backward=backward)


@pytest.fixture(scope="module")
def _file(text: str, tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return imported(text, tmp_path_factory.mktemp("backward"), "fast_tanh")


@pytest.fixture
def fast(_file: ModuleType) -> ModuleType:
    _file.reset_stats()
    return _file


def test_gradients_are_computed_by_kernels(fast: ModuleType) -> None:
    model = fast.Module(96)
    for rows in (32, 3, 8):
        fast.reset_stats()
        check(fast, model, torch.randn(rows, 96, requires_grad=True))
        assert fast.stats()["kernel"] == 1
    fast.reset_stats()
    check(fast, model, torch.randn(8, 96))  # of the weight alone
    model.weight.requires_grad_(requires_grad=False)
    fast.reset_stats()
    check(fast, model, torch.randn(8, 96, requires_grad=True))


@pytest.mark.parametrize(
    "loss",
    [
        torch.Tensor.sum,
        lambda y: (y.t() * torch.linspace(0.0, 1.0, y.numel()).view(96, -1)).sum(),
        lambda y: (torch.cat([torch.zeros(5), y.flatten()]) * torch.linspace(0.0, 1.0, 773)).sum(),
        lambda y: nn.functional.embedding(torch.tensor([1, 2, 2]), y, sparse=True).sum(),
        lambda y: y.double().square().sum(),
    ],
    ids=["expanded", "transposed", "misplaced", "sparse", "of another type"],
)
def test_a_result_s_gradient_is_taken_as_it_comes(
    fast: ModuleType, loss: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    model = fast.Module(96)
    x = torch.randn(8, 96, requires_grad=True)
    found = torch.autograd.grad(loss(model(x)), [x, model.weight])
    result = torch.tanh(x) * model.weight
    (of_result,) = torch.autograd.grad(loss(result), [result], retain_graph=True)
    wanted = torch.autograd.grad(result, [x, model.weight], of_result.to_dense())
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
    assert fast.stats()["backward"]["kernel"] == 1


def test_a_missing_gradient_is_that_of_zeros(fast: ModuleType) -> None:
    model = fast.Module(96)
    tensors = [torch.randn(8, 96), model.weight.detach()]
    found = fast._gradient(tensors, [None], [True, True], model._kf.kind)
    assert [(t.shape, t.count_nonzero().item()) for t in found] == [((8, 96), 0), ((96,), 0)]
    assert fast.stats()["backward"]["last_reason"] == "the gradient of out is not given"


def test_tensors_that_change_in_between_are_refused(fast: ModuleType) -> None:
    """As by operators of torch that keep them."""
    model = fast.Module(96)
    x = torch.randn(8, 96, requires_grad=True) * 1
    for tensor in (x, model.weight):
        loss = model(x).sum()
        with torch.no_grad():
            tensor.mul_(1.0)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()


def test_gradients_of_several_threads_are_right(fast: ModuleType) -> None:
    model = fast.Module(96)
    found: list[bool] = []

    def work(rows: int) -> None:
        for _ in range(5):
            x = torch.randn(rows, 96, requires_grad=True)
            pairs = zip(
                gradients(model, x, [x, model.weight]),
                gradients(lambda x: torch.tanh(x) * model.weight, x, [x, model.weight]),
                strict=True,
            )
            found.append(all(torch.allclose(*pair, rtol=1e-4, atol=1e-4) for pair in pairs))

    threads = [threading.Thread(target=work, args=(rows,)) for rows in (3, 8, 8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 15
    assert fast.stats()["backward"]["reference"] == 0


def test_the_reference_does_what_was_not_judged(fast: ModuleType) -> None:
    check(
        fast, fast.Module(96), torch.randn(64, 96, requires_grad=True), "rows = 64 was not judged"
    )


def test_other_gradients_than_those_found_are_the_references(text: str, tmp_path: Path) -> None:
    line = "GRADIENTS = (('out0', 'x'), ('out1', 'weight'))"
    assert line in text
    changed = text.replace(line, "GRADIENTS = (('out0', 'x'),)")
    # Its operators have names of their own, as those of another file.
    file = imported(changed.replace("DIGEST = '", "DIGEST = 'x"), tmp_path, "fast_x")
    model = file.Module(96)
    x = torch.randn(8, 96, requires_grad=True)
    check(file, model, x, "no kernels give the gradient by weight")


def test_weights_are_trained_as_by_the_reference(fast: ModuleType) -> None:
    own, plain = fast.Module(96), fast._Reference(96)
    torch.manual_seed(0)
    x, wanted = torch.randn(16, 96), torch.randn(16, 96)
    for model in (own, plain):
        steps = torch.optim.SGD(model.parameters(), lr=10.0)
        for _ in range(5):
            steps.zero_grad()
            (model(x) - wanted).square().mean().backward()
            steps.step()
    torch.testing.assert_close(own.weight, plain.weight, rtol=1e-5, atol=1e-5)
    assert not torch.allclose(own.weight, torch.ones(96), atol=0.1)
    assert fast.stats()["backward"] == {
        "kernel": 5, "reference": 0, "last_reason": "", "reasons": {},
    }  # fmt: skip


def test_gradients_of_gradients_and_many_at_once_are_refused(fast: ModuleType) -> None:
    model = fast.Module(96)
    x = torch.randn(8, 96, requires_grad=True)
    (found,) = torch.autograd.grad(model(x).square().sum(), [x], create_graph=True)
    with pytest.raises(RuntimeError, match="no autograd formula"):
        torch.autograd.grad(found.sum(), [x])
    result = model(x)
    with pytest.raises(NotImplementedError, match=r"do not run under torch\.vmap"):
        torch.vmap(lambda grad: torch.autograd.grad(result, [x], grad))(torch.ones(2, 8, 96))


def test_both_operators_are_good_citizens(fast: ModuleType) -> None:
    model = fast.Module(96)
    x = torch.randn(8, 96, requires_grad=True)
    torch.library.opcheck(fast.operator, (x, model.weight, model._kf.kind))
    tensors, grads = [x.detach(), model.weight.detach()], [torch.randn(8, 96)]
    torch.library.opcheck(fast._gradient, (tensors, grads, [True, True], model._kf.kind))
    assert fast.stats()["backward"]["kernel"] > 0


def test_a_compiled_training_step_runs_them(fast: ModuleType) -> None:
    model = fast.Module(96)
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend="aot_eager")
    x = torch.randn(8, 96, requires_grad=True)
    found = gradients(compiled, x, [x, model.weight])
    wanted = gradients(lambda x: torch.tanh(x) * model.weight, x, [x, model.weight])
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
    assert fast.stats()["backward"]["kernel"] == 1


def tried(text: str, winners: tuple[Winner, Winner]) -> FormReport:
    forward, gradient = winners
    request = FormRequest(
        text=text,
        device="cpu",
        is_scaled=True,
        workloads=form_workloads([forward]),
        backward=form_workloads([gradient], forward.record.task.reference),
    )
    return try_exported_form(request, EvaluatorSettings())


def test_it_is_tried_on_all_its_workloads(text: str, winners: tuple[Winner, Winner]) -> None:
    report = tried(text, winners)
    assert [r.failure for r in (*report.results, *report.backward)] == [""] * 4
    timed, held_out = report.backward
    assert (timed.name, held_out.name) == ("default", "rows=3")
    assert timed.kernels_ns is not None
    assert timed.eager_ns > 0
    assert held_out.kernels_ns is None
    wrong = text.replace("names['grad_out'], names['out0']", "names['x'], names['out0']")
    assert wrong != text
    assert any("gradients are wrong" in r.failure for r in tried(wrong, winners).backward)


def test_the_file_has_the_records_of_both(
    text: str, winners: tuple[Winner, Winner], tmp_path: Path
) -> None:
    path = tmp_path / "fast_tanh.py"
    path.write_text(text)
    assert read_records(path) == tuple(winner.record for winner in winners)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda t: replace(t, reference=t.reference.replace("tanh(x)", "sin(x)")),
            "is not the grad",
        ),
        (lambda t: replace(t, check="looked_at"), "a check of its own"),
        (
            lambda t: replace(t, reference=t.reference.replace("wanted = ()", "wanted = ('x',)")),
            "not the gradients by x:",
        ),
    ],
    ids=["another module", "a check", "fewer gradients"],
)
def test_another_run_is_no_backward_pass(
    winners: tuple[Winner, Winner], change: Callable[[Any], Any], said: str
) -> None:
    forward, gradient = winners
    changed = replace(gradient, record=replace(gradient.record, task=change(gradient.record.task)))
    with pytest.raises(InvalidArgumentError, match=said):
        backward_pass(forward, [changed])
    with pytest.raises(InvalidArgumentError, match="is not the gradient"):
        backward_pass(gradient, [forward])


def test_both_have_to_be_of_one_precision(
    winners: tuple[Winner, Winner], backward: BackwardPass
) -> None:
    gradient = winners[1]
    task = replace(gradient.record.task, training=not gradient.record.task.training)
    other = replace(gradient, record=replace(gradient.record, task=task))
    with pytest.raises(InvalidArgumentError, match="differ in training"):
        torch_file([winners[0]], "fast", backward=replace(backward, winners=(other,)))


def test_a_module_in_a_model_is_trained(fast: ModuleType) -> None:
    """Gradients that come from other operators are kernels' inputs as they are."""
    model = nn.Sequential(nn.Linear(5, 96), fast.Module(96), nn.Linear(96, 2))
    model(torch.randn(8, 5)).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    assert fast.stats()["backward"]["kernel"] == 1
