"""Timed calls are judged as the first runs are: by tolerance, element by element, and in bits."""

import dataclasses
from collections.abc import Callable, Iterator

import pytest
import torch

from evaluator_svc.judge import Judge
from evaluator_svc.judge.comparison import precision
from evaluator_svc.judge.timed_calls.call_inputs import CallValues
from evaluator_svc.messages.call_draws import call_draws
from evaluator_svc.messages.judge import KeptClaim, KeptVerdict
from evaluator_svc.messages.measurement import KeptOutput
from evaluator_svc.pipeline.correctness.element_errors import assess_elements
from kernel_foundry.domain.check import CheckResult
from kernel_foundry.domain.task import Task, Tolerance
from kernel_foundry_native import _core as native
from tests.judge.judge_tasks import EACH_MEMORY, TOLERANCE, RunnerSide, make_task
from tests.judge.test_precision import judged

Kernel = Callable[..., torch.Tensor]

SEEDS = (31, 32, 33)
WIDE = Tolerance(rtol=1e-2, atol=0.5)
PRODUCT = make_task(
    "def forward(self, a, b):\n    return a @ b",
    inputs="[torch.randn(rows, cols), torch.randn(cols, rows)]",
    rows=64,
    cols=512,
    tolerance=WIDE,
)
SHARP = make_task("def forward(self, x):\n    return torch.softmax(4 * x, -1)", rows=33, cols=700)
LAST = make_task("def forward(self, x):\n    return x.argmax(-1)")


class Timed:
    def __init__(self, judge: Judge, task: Task, kernel: Kernel, *, is_lean: bool) -> None:
        self.judge = judge
        message, descriptors = judge.draw(
            task, task.workloads[0].name, task.tolerance or TOLERANCE, SEEDS, is_lean=is_lean
        )
        self.handle = message.draw
        self.side = RunnerSide(judge, message, descriptors)
        self.names = [s.name for s in message.slots if s.role == "input"]
        if is_lean:
            judge.load_seed(self.handle, 0)
        self.side.run(kernel, *self.names)
        assert not judge.verify(self.handle).is_wrong
        assert judge.audit_precision(self.handle)

    def time(self, kernel: Kernel) -> KeptVerdict:
        """Keep calls as a measurement does; return the judge's verdict on them."""
        claim = KeptClaim(
            call_draws_seed=5,
            redraw_key=77,
            set_count=self.side.draw.seed_count,
            keep_count=self.side.draw.slot_count,
            warmup_count=3,
            call_count=20,
            has_guests=False,
        )
        shared = self.judge._draws[self.handle]
        kept = native.kept_calls(
            draws=call_draws(claim.call_draws_seed),
            **{k: v for k, v in _fields(claim) if k not in _OF_VALUES},
        )
        for slot, (call, seed) in enumerate(kept):
            values = CallValues(key=claim.redraw_key, index=claim.warmup_count + call + 1)
            with shared.call_set(seed, values) as timed:
                made = kernel(*timed.inputs)
            self.side.tensor("out", seed=seed, slot=slot).copy_(made)
        seeds = [KeptOutput(seed=seed, slot=slot) for slot, (_, seed) in enumerate(kept)]
        return self.judge.verify_kept(self.handle, tuple(seeds), claim)


_OF_VALUES = ("call_draws_seed", "redraw_key", "redraws_parameters")
"""Fields that say what values calls have, not which of them are kept."""


def _fields(claim: KeptClaim) -> list[tuple[str, int]]:
    return [(f.name, getattr(claim, f.name)) for f in dataclasses.fields(claim)]


@pytest.fixture(params=[False, True], ids=["copies", "lean"])
def timed(
    judge: Judge, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[Task, Kernel], Timed]]:
    """Return a function that makes a draw ready; a lean one is judged on parts of its batch."""
    made: list[Timed] = []

    def make(task: Task, kernel: Kernel) -> Timed:
        made.append(Timed(judge, task, kernel, is_lean=request.param))
        return made[-1]

    yield make
    for one in made:
        judge.release(one.handle)


pytestmark = pytest.mark.parametrize("judge", EACH_MEMORY, indirect=True)
Make = Callable[[Task, Kernel], Timed]


def tails_left_out(x: torch.Tensor) -> torch.Tensor:
    right = torch.softmax(4 * x, -1)
    return torch.where(right < 1e-6 * right.amax(-1, keepdim=True), 0.0, right)


def in_half(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a.half() @ b.half()).float()


def in_two_parts(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return a product of operands split into two bfloat16 parts."""
    high, top = a.bfloat16().float(), b.bfloat16().float()
    low, rest = (a - high).bfloat16().float(), (b - top).bfloat16().float()
    return high @ top + (high @ rest + low @ top)


def softmax(x: torch.Tensor) -> torch.Tensor:
    power = (4 * x).exp()
    return power / power.sum(-1, keepdim=True)


def test_fewer_bits_in_timed_calls_alone_are_refused(timed: Make) -> None:
    found = timed(PRODUCT, torch.matmul).time(in_half)

    assert not found.verdict.is_wrong, "the tolerance is wide"
    assert found.audited is not None
    refused = judged(found.audited, PRODUCT, "float16", inputs="timed calls")
    assert refused.is_refused
    assert "w (timed calls)" in refused.findings[0].message


def test_work_left_out_in_timed_calls_alone_is_refused(timed: Make) -> None:
    found = timed(SHARP, softmax).time(tails_left_out)

    assert not found.verdict.is_wrong, "the tolerance sees nothing of it"
    assert found.audited is not None
    check, failure = assess_elements(found.audited, "w", "timed calls")
    assert check.result is CheckResult.FAILED
    assert failure is not None
    assert "are zero" in failure.findings[0].message
    assert "w (timed calls)" in failure.findings[0].message


@pytest.mark.parametrize(
    ("task", "kernel"),
    [(PRODUCT, torch.matmul), (PRODUCT, in_two_parts), (SHARP, softmax)],
    ids=["float32", "split into bfloat16", "softmax"],
)
def test_calls_like_the_first_runs_pass_without_another_reference_in_float64(
    timed: Make, task: Task, kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = timed(task, kernel)
    monkeypatch.setattr(precision, "audit_call", None)
    monkeypatch.setattr("evaluator_svc.judge.comparison.kept_calls.audit_call", None)

    found = ready.time(kernel)

    assert not found.verdict.is_wrong
    assert found.audited is not None
    assert found.audited.agreeing_bits > 14
    assert found.audited.far is None


def test_bits_that_the_task_asks_for_are_counted_in_timed_calls(timed: Make) -> None:
    strict = dataclasses.replace(PRODUCT, least_bits=20.0)
    found = timed(strict, torch.matmul).time(in_two_parts)

    assert found.audited is not None
    refused = judged(found.audited, strict)
    assert refused.is_refused
    assert "asks for 20" in refused.findings[0].message


def test_whole_numbers_and_wrong_calls_are_not_audited(timed: Make) -> None:
    whole = timed(LAST, lambda x: x.argmax(-1)).time(lambda x: x.argmax(-1))
    wrong = timed(SHARP, softmax).time(lambda x: 0.9 * softmax(x))

    assert (whole.verdict.is_wrong, wrong.verdict.is_wrong) == (False, True)
    assert whole.audited is not None
    assert whole.audited.far is None
    assert wrong.audited is None
