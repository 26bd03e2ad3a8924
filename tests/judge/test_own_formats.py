"""Each output is held to the format that it rounds to, or to the values of inputs."""

import dataclasses
from collections.abc import Callable

import pytest
import torch

from evaluator_svc.judge import Judge
from evaluator_svc.judge.admission.answer_check import check_answers
from evaluator_svc.judge.admission.moved_values import moves_values
from evaluator_svc.judge.memory.judge_memory import open_memory
from evaluator_svc.judge.tensors.scales import Groups, group_scale, groups_of
from evaluator_svc.messages.judge import PrecisionReply
from evaluator_svc.pipeline.correctness.element_errors import assess_elements
from evaluator_svc.requests.request_limits import check_task
from kernel_foundry.domain.check import CheckResult
from kernel_foundry.domain.task import Precision, Task, Tolerance
from kernel_foundry.errors import InvalidArgumentError
from tests.judge.judge_tasks import RunnerSide, make_task, prepare
from tests.judge.test_precision import cut, judged

Drawn = Callable[..., RunnerSide]

PAIR = make_task("def forward(self, x):\n    y = torch.tanh(x)\n    return y, y.half()")
CHECKED = make_task(
    "def forward(self, x):\n"
    "    assert x.dtype == torch.float32\n"
    "    return torch.softmax(4 * x, -1)",
    rows=33,
    cols=700,
)
POLAR = make_task(
    "def forward(self, x):\n    return torch.stack([100 * x.abs(), torch.tanh(x)], -1).flatten(1)",
    rows=33,
    cols=70,
)


@pytest.mark.parametrize(
    ("forward", "moved"),
    [
        pytest.param("torch.sort(x, -1).values", True, id="sort"),
        pytest.param("torch.relu(x)", True, id="relu"),
        pytest.param("x.clamp(-1.0, 0.75)", True, id="clamp"),
        pytest.param("x.abs().amax(-1)", True, id="largest magnitudes"),
        pytest.param("nn.functional.max_pool1d(x, 3)", True, id="pool"),
        pytest.param("nn.functional.pad(x.t().flip(0), (1, 2))", True, id="turned and padded"),
        pytest.param("torch.softmax(x, -1)", False, id="softmax"),
        pytest.param("x.bfloat16().float()", False, id="rounded"),
        pytest.param("2 * x", False, id="doubled"),
        pytest.param("torch.cat([x[:-1], x[-1:].exp()])", False, id="a computed row"),
        pytest.param("torch.where(x.abs() < 8, x, x.exp())", False, id="computed where large"),
        pytest.param("x.argmax(-1)", False, id="whole numbers"),
    ],
)
@pytest.mark.parametrize("precision", [None, Precision.FP16])
def test_outputs_that_hold_values_of_inputs_are_found(
    forward: str, moved: bool, precision: Precision | None
) -> None:
    task = make_task(f"def forward(self, x):\n    return {forward}")
    task = dataclasses.replace(task, precision=precision)
    assert moves_values([prepare(task)], 101) == (moved,)


@pytest.mark.parametrize(
    ("second", "formats"),
    [
        pytest.param("y.half()", (torch.float32, torch.float16), id="a copy in float16"),
        pytest.param("y.half().float()", (torch.float32, torch.float16), id="through float16"),
        pytest.param("y + 1", (torch.float32, torch.float32), id="float32 alone"),
    ],
)
def test_an_output_has_the_format_that_it_rounds_to(
    second: str, formats: tuple[torch.dtype, ...]
) -> None:
    task = make_task(f"def forward(self, x):\n    y = torch.tanh(x)\n    return y, {second}")
    assert prepare(task).module.output_roundings == formats


def test_tolerances_are_those_of_each_output() -> None:
    memory = open_memory("null:0")
    pair = check_answers(PAIR, [prepare(PAIR)], memory).tolerance
    assert pair.of(0).rtol == pytest.approx(5e-5)
    assert pair.of(1).rtol == pytest.approx(4e-3)
    task = make_task("def forward(self, x):\n    return torch.sort(x, -1).values, x.exp()")
    both = check_answers(task, [prepare(task)], memory).tolerance
    assert both.is_exact(0)
    assert both.of(1).rtol == pytest.approx(5e-5)


def test_shares_of_outputs_are_no_part_of_a_tasks_digest_and_nobodys_to_give() -> None:
    given = Tolerance(rtol=1e-3, atol=1e-3)
    shared = dataclasses.replace(given, output_shares=(0.5,))
    assert repr(shared) == repr(given)
    with pytest.raises(InvalidArgumentError, match="output_shares"):
        check_task(dataclasses.replace(PAIR, tolerance=shared))


def run(
    judge: Judge, drawn: Drawn, task: Task, kernels: dict[str, Callable[..., torch.Tensor]]
) -> PrecisionReply:
    runner = drawn(task)
    for output, kernel in kernels.items():
        runner.run(kernel, "x", output=output)
    return judge.audit_precision(runner.draw.draw)


@pytest.mark.parametrize(("bits", "result"), [(24, CheckResult.PASSED), (11, CheckResult.FAILED)])
def test_a_narrow_output_excuses_no_other(
    judge: Judge, drawn: Drawn, bits: int, result: CheckResult
) -> None:
    kernels = {
        "out0": lambda x: cut(torch.tanh(x), bits) if bits < 24 else torch.tanh(x),
        "out1": lambda x: torch.tanh(x).half(),
    }
    answer = run(judge, drawn, PAIR, kernels)
    assert answer.wide is not None
    assert judged(answer, PAIR, "float16", rounding="float16").check.result is result


def test_small_elements_count_where_the_reference_takes_no_float64(
    judge: Judge, drawn: Drawn
) -> None:
    def no_tails(x: torch.Tensor) -> torch.Tensor:
        right = torch.softmax(4 * x, -1)
        return torch.where(right < 1e-6 * right.amax(-1, keepdim=True), 0.0, right)

    answer = run(judge, drawn, CHECKED, {"out": no_tails})
    check, failure = assess_elements(answer, "w")
    assert check.result is CheckResult.FAILED
    assert failure is not None

    plain = run(judge, drawn, CHECKED, {"out": lambda x: torch.softmax(4 * x, -1)})
    assert "no float64 result" in plain.note
    assert assess_elements(plain, "w")[1] is None
    assert judged(plain, CHECKED, "float16").check.result is CheckResult.PASSED
    half = run(judge, drawn, CHECKED, {"out": lambda x: torch.softmax(4 * x.half(), -1).float()})
    assert judged(half, CHECKED, "float16").is_refused


def test_small_columns_have_bits_of_their_own(judge: Judge, drawn: Drawn) -> None:
    def polar(x: torch.Tensor, bits: int) -> torch.Tensor:
        angle = torch.tanh(x) if bits == 24 else cut(torch.tanh(x), bits)
        return torch.stack([100 * x.abs(), angle], -1).flatten(1)

    rough = run(judge, drawn, POLAR, {"out": lambda x: polar(x, 9)})
    assert rough.columns is not None
    found = judged(rough, POLAR)
    assert found.check.result is CheckResult.SUSPECT
    assert "in columns that are small" in found.findings[0].message
    plain = run(judge, drawn, POLAR, {"out": lambda x: polar(x, 24)})
    assert judged(plain, POLAR).check.result is CheckResult.PASSED


@pytest.mark.parametrize(
    ("shape", "groups"),
    [
        ((1000, 2), Groups(count=2, inner=1)),
        ((100, 3, 4), Groups(count=12, inner=1)),
        ((64, 32), Groups(count=64, inner=32)),
        ((8, 16, 4, 4), Groups(count=128, inner=16)),
        ((3, 2), Groups(count=1, inner=6)),
        ((1000, 1), Groups(count=1, inner=1000)),
        ((), Groups(count=1, inner=1)),
    ],
)
def test_columns_of_few_places_have_a_scale_each(shape: tuple[int, ...], groups: Groups) -> None:
    assert groups_of(shape) == groups
    tensor = torch.randn(shape) * torch.tensor([100.0, 1.0]) if shape == (1000, 2) else None
    if tensor is not None:
        assert torch.allclose(group_scale(tensor), tensor.square().mean(0).sqrt())
