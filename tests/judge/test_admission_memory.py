"""How much memory the question whether a large task can be judged takes at once."""

import dataclasses
import weakref
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from evaluator_svc.judge.admission import screening, tolerance
from evaluator_svc.judge.admission.answer_check import AnswerCheck, check_answers
from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload
from evaluator_svc.judge.memory.judge_memory import open_memory
from evaluator_svc.judge.reference import formats
from evaluator_svc.judge.tensors import relative_errors, scales, tensor_parts
from tests.judge.judge_tasks import make_task

RELU = """
def forward(self, x):
    return torch.relu(x)
"""
ROWS, COLS = 512, 2048
TENSOR_BYTES = 4 * ROWS * COLS
BLOCK = 1 << 13
"""Elements of a block: as small beside a tensor as on a large workload."""


class Live(TorchDispatchMode):
    """Keeps the most bytes of tensors that were alive at one time."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's own base
        self.peak_bytes = 0
        self._tensors: list[weakref.ref[torch.Tensor]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operator, then add up what is alive."""
        result = func(*args, **(kwargs or {}))
        made = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
        self._tensors = [ref for ref in self._tensors if ref() is not None]
        self._tensors += [weakref.ref(tensor) for tensor in made]
        alive = [tensor.untyped_storage() for ref in self._tensors if (tensor := ref()) is not None]
        held = {storage.data_ptr(): storage.nbytes() for storage in alive}
        self.peak_bytes = max(self.peak_bytes, sum(held.values()))
        return result


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tolerance, "_WHOLE_ELEMENTS", 0)
    monkeypatch.setattr(tolerance, "_ROW_ELEMENTS", BLOCK)
    monkeypatch.setattr(formats, "_PART_ELEMENTS", BLOCK)
    monkeypatch.setitem(relative_errors._CHUNK_ELEMENTS, "cpu", BLOCK)  # type: ignore[index]
    monkeypatch.setattr(scales, "_CACHED_ELEMENTS", BLOCK)
    for module in (scales, screening, tensor_parts):
        monkeypatch.setattr(module, "CHUNK_ELEMENTS", BLOCK)


def judged(body: str, *, memory_bytes: int) -> tuple[AnswerCheck, int]:
    """Return what was found of a task, and the most bytes that its tensors took."""
    task = make_task(body, rows=ROWS, cols=COLS)
    with Live() as live:
        prepared = PreparedWorkload(
            task, task.workloads[0], device=torch.device("cpu"), memory_bytes=memory_bytes
        )
        answers = check_answers(task, [prepared], open_memory("null:0"))
    return answers, live.peak_bytes


@pytest.mark.usefixtures("blocks")
def test_a_large_relu_is_judged_with_three_tensors_at_once() -> None:
    """An input and two outputs, or three outputs; 30 GB are four of 1.6 G floats."""
    large, peak_bytes = judged(RELU, memory_bytes=5 * TENSOR_BYTES)
    small, _ = judged(RELU, memory_bytes=1 << 30)

    assert 3 * TENSOR_BYTES <= peak_bytes <= 3.2 * TENSOR_BYTES
    # Only small workloads tell that values are moved and nothing else.
    assert large.tolerance == dataclasses.replace(small.tolerance, output_shares=())
    assert (large.refusals, large.exact) == (small.refusals, small.exact)


@pytest.mark.usefixtures("blocks")
def test_what_a_large_output_ignores_is_found_within_four_tensors() -> None:
    """Two of them are the reference's own: a step's result and its operand's."""
    body = """
def __init__(self):
    super().__init__()
    self.weight = nn.Parameter(torch.ones(cols))

def forward(self, x):
    return torch.tanh(x) + 0.0 * self.weight
"""
    answers, peak_bytes = judged(body, memory_bytes=5 * TENSOR_BYTES)

    assert peak_bytes <= 4.2 * TENSOR_BYTES
    assert any("hardly depends on the weights" in warning for warning in answers.warnings)
