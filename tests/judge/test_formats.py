"""A reference keeps its own formats, and has an exact result whatever it makes on the way."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from evaluator_svc.judge import Judge
from evaluator_svc.judge.admission import tolerance
from evaluator_svc.judge.admission.tolerance import measure
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload
from evaluator_svc.judge.reference.formats import WideningMode, narrowest, widen_state
from evaluator_svc.judge.tensors.rounding_noise import UNKNOWN
from kernel_foundry.domain.admission import Distribution
from kernel_foundry.domain.task import Precision, Task
from tests.judge.judge_tasks import PEAKS, SOFTMAX, make_task, prepare

RECURRENT = """
def __init__(self):
    super().__init__()
    self.lstm = nn.LSTM(cols, 8, num_layers=2, batch_first=True)
    self.head = nn.Linear(8, 4)

def forward(self, x):
    first = torch.zeros(2, x.size(0), 8, dtype=torch.float32, device=x.device)
    cell = torch.zeros(2, x.size(0), 8, device=x.device).float()
    out, _ = self.lstm(x, (first, cell))
    return self.head(out[:, -1])
"""


class Mixed(nn.Module):
    """Makes states, casts and tensors of a list in float32 and less."""

    def __init__(self) -> None:
        super().__init__()
        self.table = [torch.full((4, 4), 0.3)]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = (x.half().to(torch.float32) @ self.table[0]).type(torch.float32)
        z = torch.empty(y.shape, dtype=torch.float32)
        z[:] = y / 3
        z.mul_(torch.tensor(1.7))
        z += self.table[0][0]
        return z.to(dtype=torch.bfloat16)


def prepared(task: Task) -> PreparedWorkload:
    return prepare(task)


def test_nothing_is_narrower_than_what_it_is_widened_to() -> None:
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(1))
    model = widen_state(Mixed(), torch.float64)
    with WideningMode(torch.float64):
        exact = model(x.double())
    table = torch.full((4, 4), 0.3).double()
    by_hand = (x.double() @ table) / 3 * torch.tensor(1.7, dtype=torch.float64) + table[0]

    assert exact.dtype is torch.float64
    assert torch.get_default_dtype() is torch.float32
    # The list's 0.3 was rounded to float32 when it was made; all later digits are exact.
    assert torch.allclose(exact, by_hand, rtol=1e-15, atol=0)


def test_what_is_written_to_keeps_its_place() -> None:
    target = torch.zeros(4)
    with WideningMode(torch.float64):
        target.add_(torch.ones(4))
        target[1:] = torch.tensor([2.0, 3.0, 4.0])

    assert target.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_a_state_made_in_forward_has_an_exact_result(judge: Judge) -> None:
    task = make_task(RECURRENT, inputs="[torch.randn(rows, 5, cols)]")
    admission = judge.admit(task, PEAKS)

    assert admission.refusals == ()
    assert admission.derivation is not None
    assert admission.derivation.inexact_because == ""
    assert not any("float64" in warning for warning in admission.warnings)
    assert 0 < admission.derivation.noise < admission.derivation.floor


STUBBORN = """
def forward(self, x):
    if x.dtype is not torch.float32:
        raise ValueError("this operator is for float32")
    return torch.softmax(x, dim=-1)
"""


def test_a_reference_without_float64_is_admitted_with_a_wider_tolerance(judge: Judge) -> None:
    admission = judge.admit(make_task(STUBBORN), PEAKS)
    usual = judge.admit(make_task(SOFTMAX), PEAKS)

    assert admission.refusals == ()
    assert admission.derivation is not None
    assert usual.derivation is not None
    assert "this operator is for float32" in admission.derivation.inexact_because
    assert admission.derivation.safety == UNKNOWN * usual.derivation.safety
    assert any("no float64 result" in warning for warning in admission.warnings)
    found, known = (
        {r.distribution: r.factor for r in a.workloads[0].value_ranges} for a in (admission, usual)
    )
    # What stands for the exact result of large integers is too far from it, four times over.
    assert known.keys() - found.keys() <= {Distribution.INTEGERS, Distribution.POWERS}
    assert all(factor >= known[which] for which, factor in found.items())


@pytest.mark.parametrize(
    ("inputs", "body", "dtypes", "rounding"),
    [
        pytest.param(
            "[torch.randn(rows, cols).bfloat16()]",
            "def forward(self, x):\n    return torch.softmax(x.float(), -1)",
            ("bfloat16", "float32"),
            torch.float32,
            id="bf16 in, f32 out",
        ),
        pytest.param(
            "[torch.randn(rows, cols)]",
            "def forward(self, x):\n    return torch.tanh(x).half() * 2",
            ("float32", "float16"),
            torch.float16,
            id="f32 in, f16 out",
        ),
        pytest.param(
            "[torch.randn(rows, cols)]",
            "def forward(self, x):\n    return torch.tanh(x).bfloat16().float() * 2",
            ("float32", "float32"),
            torch.bfloat16,
            id="bf16 inside",
        ),
        pytest.param(
            "[torch.randn(rows, cols, dtype=torch.float64)]",
            "def forward(self, x):\n    return torch.tanh(x)",
            ("float64", "float64"),
            torch.float64,
            id="float64",
        ),
    ],
)
def test_own_formats_are_kept(
    inputs: str, body: str, dtypes: tuple[str, ...], rounding: torch.dtype
) -> None:
    item = prepared(make_task(body, inputs=inputs))
    drawn = item.input_set(3)

    assert tuple(tensor.dtype for tensor in item.tensors) == dtypes
    assert item.module.rounding is rounding
    assert drawn.expected()[0].dtype is drawn.run()[0].dtype
    exact = drawn.run(dtype=torch.float64)[0]
    error = (drawn.expected()[0].double() - exact.double()).abs().max()
    assert error <= torch.finfo(drawn.expected()[0].dtype).eps * exact.abs().max()
    item.close()


def test_a_cast_that_was_asked_for_is_told(judge: Judge) -> None:
    kept = judge.admit(make_task(SOFTMAX), PEAKS)
    cast = judge.admit(replace(make_task(SOFTMAX), precision=Precision.BF16), PEAKS)

    assert (kept.rounding, kept.is_narrow) == ("float32", False)
    assert (cast.rounding, cast.is_narrow) == ("bfloat16", True)
    told = "precision: bf16 casts inputs and weights that are float32"
    assert set(cast.warnings) - set(kept.warnings) == {told}


class Moved(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's own base
    """Refuses to compute with floats of 8 bits, as a GPU does; they may be moved and converted."""

    _MOVES = frozenset(
        [
            "_to_copy",
            "to",
            "copy_",
            "clone",
            "view",
            "slice",
            "split",
            "select",
            "detach",
            "lift_fresh",
            "empty_like",
            "zeros_like",
            "fill_",
            "_assert_tensor_metadata",
        ]
    )

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operator."""
        given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        if any(t.is_floating_point() and t.element_size() == 1 for t in given):
            name = func.name().removeprefix("aten::").partition(".")[0]
            if name not in self._MOVES:
                raise NotImplementedError(f"{name} of 8 bits")
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_a_task_of_8_bit_floats_is_admitted(judge: Judge, dtype: str) -> None:
    body = f"""
def __init__(self):
    super().__init__()
    self.weight = nn.Parameter(torch.randn(cols).to(torch.{dtype}), requires_grad=False)

def forward(self, x):
    return (x.float() * self.weight.float()).to(torch.{dtype})
"""
    with Moved():  # type: ignore[no-untyped-call]
        admission = judge.admit(
            make_task(body, inputs=f"[torch.randn(rows, cols).to(torch.{dtype})]"), PEAKS
        )

    assert admission.refusals == ()
    assert [t.dtype for t in admission.workloads[0].tensors] == [dtype] * 3
    assert (admission.rounding, admission.is_narrow) == (dtype, True)
    assert 0.1 < admission.tolerance.rtol < 0.4
    assert admission.workloads[0].minimal_bytes == 2 * 33 * 70 + 70


def test_the_narrowest_of_formats() -> None:
    assert narrowest([]) is torch.float32
    assert narrowest([torch.int64, torch.float64]) is torch.float64
    assert narrowest([torch.float16, torch.bfloat16, torch.float32]) is torch.bfloat16


@pytest.mark.parametrize(
    ("body", "rows"),
    [
        pytest.param("return torch.softmax(x, dim=-1)", 2, id="rows are independent"),
        pytest.param("return torch.softmax(x, dim=0)", 33, id="every row sees all others"),
    ],
)
def test_of_a_large_batch_some_rows_are_computed_exactly(
    monkeypatch: pytest.MonkeyPatch, body: str, rows: int
) -> None:
    item = prepared(make_task(f"def forward(self, x):\n    {body}"))
    seen: list[int] = []
    run = InputSet.run

    def watched(self: InputSet, **given: Any) -> tuple[torch.Tensor, ...]:
        outputs = run(self, **given)
        if given.get("dtype") is torch.float64:
            seen.append(len(outputs[0]))
        return outputs

    monkeypatch.setattr(InputSet, "run", watched)
    whole = measure([item.input_set(1)])
    monkeypatch.setattr(tolerance, "_WHOLE_ELEMENTS", 100)
    monkeypatch.setattr(tolerance, "_ROW_ELEMENTS", 150)
    part = measure([item.input_set(1)])
    item.close()

    assert seen == [33, rows]
    assert 0 < part.noise <= whole.noise
