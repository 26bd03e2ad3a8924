"""What one task's file sets in the judge's process is not there for another task."""

import math
import random
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import nn

from evaluator_svc.judge.process_state import ProcessState, TaskStates
from kernel_foundry.errors import TaskInvalidError

SETTINGS = {
    "default dtype": "torch.set_default_dtype(torch.float64)",
    "default device": "torch.set_default_device('meta')",
    "threads of torch": "torch.set_num_threads(torch.get_num_threads() + 1)",
    "gradients": "torch.set_grad_enabled(not torch.is_grad_enabled())",
    "denormals flushed": "torch.set_flush_denormal(True)",
    "autocast on cpu": "torch.autocast('cpu').__enter__()",
    "float32 matmul precision": "torch.set_float32_matmul_precision('medium')",
    "torch.backends.cudnn.benchmark": "torch.backends.cudnn.benchmark = True",
    "torch.backends.fp32_precision": "torch.backends.fp32_precision = 'tf32'",
    "numpy's treatment of errors": "np.seterr(all='ignore')",
    "math.pi": "math.pi = 3.0",
    "torch.sin": "del torch.sin",
    "torch.nn.functional.gelu": "nn.functional.gelu = lambda x: x",
    "torch.nn.functional.len": "nn.functional.len = lambda x: 1",
    "torch.Tensor.relu": "torch.Tensor.relu = lambda x: x",
    "torch.nn.modules.linear.Linear.forward": "nn.Linear.forward = lambda self, x: x",
    "random.Random.random": "random.Random.random = lambda self: 0.5",
    "function modes": "torch.overrides.TorchFunctionMode().__enter__()",
}
NOT_AGAIN = ("autocast on cpu", "function modes")
"""A mode that was left cannot be entered again, and nobody needs it."""


@pytest.fixture
def state() -> Iterator[ProcessState]:
    torch.set_float32_matmul_precision("highest")  # as judges have it
    before = ProcessState()
    yield before
    before.restore(before.changes())


@pytest.mark.parametrize("name", SETTINGS)
def test_a_task_keeps_what_it_sets_to_itself(state: ProcessState, name: str) -> None:
    states = TaskStates(state)
    states.enter("first")
    exec(SETTINGS[name], {"torch": torch, "nn": nn, "np": np, "math": math, "random": random})
    set_by_first = state.changes()
    assert name in set_by_first
    assert any(line.startswith(name) for line in states.changed())

    states.enter("second")
    assert state.changes() == {}
    assert states.changed() == ()

    states.enter("first")
    assert name in NOT_AGAIN or state.changes() == set_by_first
    states.enter("")
    assert state.changes() == {}


def test_a_task_that_changes_nothing_changes_nothing(state: ProcessState) -> None:
    states = TaskStates(state)
    states.enter("honest")
    torch.manual_seed(3)
    with torch.device("meta"), torch.no_grad():
        nn.Sequential(nn.Linear(4, 4), nn.GELU())(torch.ones(2, 4))

    assert states.changed() == ()
    states.check("honest")


def test_what_cannot_be_put_back_is_refused(
    state: ProcessState, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = TaskStates(state)
    states.enter("override")
    # As `torch.library.Library("aten", "IMPL").impl("gelu", f, "CPU")` does, for good.
    monkeypatch.setattr(torch.library, "_impls", {*torch.library._impls, "aten/gelu/CPU"})

    with pytest.raises(TaskInvalidError, match=r"override: the reference changes operators of"):
        states.check("override")
    assert not states.is_sound()
    monkeypatch.undo()
    assert states.is_sound()
