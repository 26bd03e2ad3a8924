"""Verdicts on outputs as a runner would leave them: right ones pass, wrong ones are explained."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from evaluator_svc.judge import Judge
from evaluator_svc.messages.comparison import RunComparison
from evaluator_svc.messages.draw import OUTPUT_SLOTS
from evaluator_svc.messages.measurement import KeptOutput
from kernel_foundry.domain.finding import FindingKind, Severity
from kernel_foundry.domain.task import Task
from tests.judge.judge_tasks import EACH_MEMORY_AND_SIZE, SCALED, SOFTMAX, RunnerSide, make_task

Drawn = Callable[..., RunnerSide]

pytestmark = pytest.mark.parametrize("judge", EACH_MEMORY_AND_SIZE, indirect=True)


def right(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, dim=-1)


def verdict_on(judge: Judge, drawn: Drawn, kernel: Callable[..., torch.Tensor]) -> RunComparison:
    runner = drawn(make_task(SOFTMAX))
    runner.run(kernel, "x")
    return judge.verify(runner.draw.draw)


def kinds(verdict: RunComparison) -> list[FindingKind]:
    return [finding.kind for finding in verdict.findings]


def test_right_outputs_pass_with_every_element_compared(judge: Judge, drawn: Drawn) -> None:
    verdict = verdict_on(judge, drawn, right)

    assert (verdict.is_wrong, verdict.is_nondeterministic, verdict.findings) == (False, False, ())
    assert verdict.correctness.mismatch_count == 0
    assert verdict.correctness.first_mismatch is None
    assert verdict.correctness.element_count == 3 * 33 * 70
    assert verdict.correctness.seed_count == 3
    assert verdict.correctness.run_count == OUTPUT_SLOTS
    assert verdict.correctness.bitwise_reproducible


def test_elements_of_a_held_out_workload_are_not_told(judge: Judge, drawn: Drawn) -> None:
    task = make_task(SOFTMAX)
    (shown,) = task.workloads
    held_out = replace(shown, name="held out", held_out=True)
    runner = drawn(replace(task, workloads=(held_out, shown)))
    runner.run(torch.sigmoid, "x")
    message = judge.verify(runner.draw.draw).findings[0].message
    assert message.endswith("elements of out are wrong; the first is out[0, 0]")


def test_outputs_are_poisoned_until_they_are_written(judge: Judge, drawn: Drawn) -> None:
    runner = drawn(make_task(SOFTMAX))
    found = [runner.tensor("out", seed=2, slot=slot) for slot in range(OUTPUT_SLOTS)]
    # What stays of a result that is a maximum, a minimum or a mask with one of them: not all of it.
    assert bool(found[0].isnan().all())
    assert bool((found[1] > 1e30).all())
    assert bool((found[2] < -1e30).all())

    verdict = judge.verify(runner.draw.draw)

    assert verdict.is_wrong
    assert kinds(verdict) == [FindingKind.OUTPUT_NOT_WRITTEN]
    assert verdict.findings[0].message == "out was never written"


def test_only_the_slots_that_were_written_are_compared(judge: Judge, drawn: Drawn) -> None:
    runner = drawn(make_task(SOFTMAX))
    runner.run(right, "x")
    for seed in range(3):
        runner.tensor("out", seed=seed, slot=1).fill_(0)

    verdict = judge.verify(runner.draw.draw, (0, 2))

    assert not verdict.is_wrong
    assert verdict.correctness.run_count == 2
    assert judge.verify(runner.draw.draw).is_nondeterministic


def test_a_tail_that_was_never_written_is_named(judge: Judge, drawn: Drawn) -> None:
    def no_tail(x: torch.Tensor) -> torch.Tensor:
        out = torch.full_like(x, 0).view(torch.int32).fill_(-1).view(torch.float32)
        out[:32] = right(x)[:32]
        return out

    finding = verdict_on(judge, drawn, no_tail).findings[0]

    assert finding.kind is FindingKind.OUTPUT_NOT_WRITTEN
    assert finding.message == "the tail of out was never written: 70 of 2310 elements"
    assert {e.name: e.value for e in finding.evidence}["first_unwritten_index"] == 2240


def _last_columns_wrong(x: torch.Tensor) -> torch.Tensor:
    out = right(x)
    out[:, 64:] = 0.5
    return out


def _a_little_off_at_two_ends(x: torch.Tensor) -> torch.Tensor:
    out = right(x)
    out[0, :2] += 1e-3 * out.square().mean().sqrt()
    return out


def _nan_in_one_row(x: torch.Tensor) -> torch.Tensor:
    out = right(x)
    out[3] = float("nan")
    return out


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        pytest.param(lambda x: 2 * right(x), FindingKind.CONSTANT_FACTOR, id="twice"),
        pytest.param(_last_columns_wrong, FindingKind.BORDER_MISMATCH, id="tail wrong"),
        pytest.param(_a_little_off_at_two_ends, FindingKind.PRECISION, id="two by chance"),
        pytest.param(_nan_in_one_row, FindingKind.NOT_A_NUMBER, id="nan"),
        pytest.param(lambda x: right(x.half()).float(), FindingKind.PRECISION, id="float16 inside"),
        pytest.param(
            lambda x: right(x).t().contiguous().view(x.shape),
            FindingKind.TRANSPOSED,
            id="transposed",
        ),
        pytest.param(torch.sigmoid, FindingKind.MISMATCH, id="another function"),
        pytest.param(torch.zeros_like, FindingKind.MISMATCH, id="zeros"),
    ],
)
def test_a_wrong_output_gets_the_finding_of_its_pattern(
    judge: Judge,
    drawn: Drawn,
    kernel: Callable[..., torch.Tensor],
    expected: FindingKind,
) -> None:
    verdict = verdict_on(judge, drawn, kernel)

    assert verdict.is_wrong
    assert kinds(verdict) == [expected]
    assert verdict.findings[0].severity is Severity.ERROR
    assert verdict.findings[0].hint
    assert verdict.findings[0].evidence
    assert re.search(
        r"; the first is out\[\d+, \d+\]: \S+ was expected, \S+ came", verdict.findings[0].message
    )


def test_a_changed_input_is_wrong_and_named(judge: Judge, drawn: Drawn) -> None:
    runner = drawn(make_task(SOFTMAX))
    runner.run(right, "x")
    runner.tensor("x", seed=1)[5, 5] += 1.0

    verdict = judge.verify(runner.draw.draw)

    assert verdict.is_wrong
    assert verdict.inputs_modified == ("x",)
    assert kinds(verdict) == [FindingKind.INPUT_MODIFIED]


def test_a_dropped_parameter_is_wrong(judge: Judge, drawn: Drawn) -> None:
    """The module's own weight is 1 and its bias 0: only redrawn ones tell."""
    runner = drawn(make_task(SCALED))
    runner.run(lambda x, bias: torch.tanh(x) + bias, "x", "bias")
    assert judge.verify(runner.draw.draw).is_wrong

    runner.run(lambda x, weight: torch.tanh(x) * weight, "x", "weight")
    assert judge.verify(runner.draw.draw).is_wrong

    runner.run(lambda x, w, b: torch.tanh(x) * w + b, "x", "weight", "bias")
    assert not judge.verify(runner.draw.draw).is_wrong


def test_runs_that_differ_within_the_tolerance_are_reported_not_refused(
    judge: Judge, drawn: Drawn
) -> None:
    runner = drawn(make_task(SOFTMAX))
    runner.run(right, "x")
    runner.tensor("out", seed=0, slot=1).mul_(1.000001)

    verdict = judge.verify(runner.draw.draw)

    assert (verdict.is_wrong, verdict.is_nondeterministic) == (False, False)
    assert not verdict.correctness.bitwise_reproducible
    assert [(f.kind, f.severity) for f in verdict.findings] == [
        (FindingKind.NONDETERMINISM, Severity.INFO)
    ]


def test_one_wrong_run_of_three_is_nondeterministic(judge: Judge, drawn: Drawn) -> None:
    runner = drawn(make_task(SOFTMAX))
    runner.run(right, "x")
    runner.tensor("out", seed=0, slot=1)[7, 7] = 9.0

    verdict = judge.verify(runner.draw.draw)

    assert (verdict.is_wrong, verdict.is_nondeterministic) == (False, True)
    assert verdict.correctness.first_mismatch == 7 * 70 + 7
    assert FindingKind.NONDETERMINISM in kinds(verdict)


def test_kept_outputs_of_timed_calls_are_compared_with_their_seed(
    judge: Judge, drawn: Drawn
) -> None:
    runner = drawn(make_task(SOFTMAX))
    runner.run(right, "x")
    judge.poison(runner.draw.draw)
    runner.tensor("out", seed=1, slot=0).copy_(right(runner.tensor("x", seed=1)))
    runner.tensor("out", seed=2, slot=1).copy_(right(runner.tensor("x", seed=0)))
    handle = runner.draw.draw

    assert not judge.verify_kept(handle, (KeptOutput(seed=1, slot=0),)).verdict.is_wrong
    assert judge.verify_kept(handle, (KeptOutput(seed=2, slot=1),)).verdict.is_wrong
    assert judge.verify_kept(handle, (KeptOutput(seed=0, slot=0),)).verdict.is_wrong


TWO_OUTPUTS = """
def forward(self, x):
    return torch.softmax(x, dim=-1).t(), (torch.argmax(x, dim=-1), x > 0)
"""


def test_several_outputs_integers_exact_and_views_made_contiguous(
    judge: Judge, drawn: Drawn
) -> None:
    runner = drawn(make_task(TWO_OUTPUTS))
    slots = {s.name: (s.dtype, s.shape) for s in runner.draw.slots if s.role == "output"}
    assert slots == {
        "out0": ("float32", (70, 33)),
        "out1": ("int64", (33,)),
        "out2": ("bool", (33, 70)),
    }
    runner.run(lambda x: right(x).t(), "x", output="out0")
    runner.run(lambda x: x.argmax(dim=-1), "x", output="out1")
    runner.run(lambda x: x > 0, "x", output="out2")
    assert not judge.verify(runner.draw.draw).is_wrong

    runner.run(lambda x: x.argmax(dim=-1) + (x[:, 0] > 1), "x", output="out1")
    verdict = judge.verify(runner.draw.draw)

    assert verdict.is_wrong
    assert "out1" in verdict.findings[0].message


def test_the_same_seed_draws_the_same_and_another_something_else(
    judge: Judge, drawn: Drawn
) -> None:
    task: Task = make_task(SCALED)
    first = drawn(task, seeds=(5, 6))
    torch.rand(3)
    second = drawn(task, seeds=(5,))

    for name in ("x", "weight", "bias"):
        assert torch.equal(first.tensor(name, seed=0), second.tensor(name, seed=0))
        assert not torch.equal(first.tensor(name, seed=0), first.tensor(name, seed=1))
    weight, bias = first.tensor("weight", seed=0), first.tensor("bias", seed=0)
    assert bool((weight != 1).all())
    assert bool(((weight >= 0.5) & (weight <= 1.5)).all())
    assert bool((bias != 0).all())


def test_a_run_without_kernels_that_is_right_is_a_decoy(judge: Judge, drawn: Drawn) -> None:
    runner = drawn(make_task(SOFTMAX))
    handle = runner.draw.draw
    assert not judge.verify_decoy(handle)

    for seed in range(3):
        assert not judge.verify_decoy(handle)
        runner.tensor("out", seed=seed, slot=0).copy_(right(runner.tensor("x", seed=seed)))

    assert judge.verify_decoy(handle) == ("out",)
