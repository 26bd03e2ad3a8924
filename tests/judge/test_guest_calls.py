"""The verdict on calls among the timed ones that had inputs of unusual values."""

import pytest
import torch

from evaluator_svc.judge import Judge
from evaluator_svc.messages.comparison import RangeVerdict
from kernel_foundry.domain.admission import Distribution, ValueRange
from kernel_foundry.domain.check import CheckResult
from kernel_foundry.domain.finding import FindingKind
from tests.judge.judge_tasks import SOFTMAX, TOLERANCE, RunnerSide, make_task

_TASK = make_task(SOFTMAX)
_RANGES = tuple(
    ValueRange(distribution=which, factor=4.0, is_binding=True)
    for which in (Distribution.LARGE, Distribution.MAGNITUDES, Distribution.ZEROS)
)
_ALL = (0, 1, 2)


def _softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, dim=-1)


def _without_maximum(x: torch.Tensor) -> torch.Tensor:
    return x.exp() / x.exp().sum(-1, keepdim=True)


def _backwards(x: torch.Tensor) -> torch.Tensor:
    """Return what is right, summed in another order."""
    return torch.softmax(x.double(), dim=-1).float()


class _Tried:
    """A candidate that is right on unusual values before it is timed, and may be another then."""

    def __init__(self, judge: Judge, *, is_lean: bool = False) -> None:
        name = _TASK.workloads[0].name
        which = tuple(r.distribution for r in _RANGES)
        drawn, descriptors = judge.draw(_TASK, name, TOLERANCE, (11,) * 3, which, is_lean=is_lean)
        self.side = RunnerSide(judge, drawn, descriptors)
        self._judge, self._draw = judge, drawn
        if is_lean:
            judge.load_seed(drawn.draw, 0)
        self.side.run(_softmax, "x")
        before = judge.verify_ranges(drawn.draw, _RANGES).verdicts
        assert [v.check.result for v in before] == [CheckResult.PASSED] * len(before)

    def timed(self, kernel, seeds: tuple[int, ...] = _ALL) -> tuple[RangeVerdict, ...]:
        """Return what is found of guest calls by `kernel`."""
        for seed in seeds:
            x = self.side.tensor("x", seed=seed)
            last = self._draw.slot_count - 1
            self.side.tensor("out", seed=seed, slot=last).copy_(kernel(x))
        return self._judge.verify_ranges(self._draw.draw, _RANGES, seeds).verdicts

    def end(self) -> None:
        self._judge.release(self._draw.draw)


@pytest.fixture
def tried(judge: Judge):
    """Return a candidate with full draws."""
    candidate = _Tried(judge)
    yield candidate
    candidate.end()


def test_the_same_bits_need_no_second_comparison(tried: _Tried) -> None:
    (verdict,) = tried.timed(_softmax)
    assert verdict.check.result is CheckResult.PASSED
    assert (
        verdict.check.note
        == "among the timed calls: large, magnitudes, zeros: to the bit as before"
    )
    assert verdict.audit is None


def test_whoever_is_wrong_in_timed_calls_alone_is_refused(tried: _Tried) -> None:
    wrong, zeros = tried.timed(_without_maximum, (0, 2))
    assert wrong.is_wrong
    assert wrong.check.result is CheckResult.FAILED
    assert wrong.findings[0].kind is FindingKind.VALUE_RANGE
    assert "large magnitude among the timed calls" in wrong.findings[0].message
    assert not zeros.is_wrong


def test_other_bits_are_compared_and_audited(tried: _Tried) -> None:
    """As of sums by atomics."""
    verdicts = tried.timed(_backwards)
    assert {v.check.result for v in verdicts} == {CheckResult.PASSED}
    assert any(v.audit is not None for v in verdicts)


def test_inputs_that_were_changed_meanwhile_are_told(tried: _Tried) -> None:
    tried.side.tensor("x", seed=1)[0, 0] += 1.0
    verdict = tried.timed(_softmax, (1,))[0]
    assert verdict.is_wrong
    assert verdict.findings[0].kind is FindingKind.INPUT_MODIFIED


def test_of_a_lean_draw_the_loaded_seed_is_compared(judge: Judge) -> None:
    lean = _Tried(judge, is_lean=True)
    try:
        (right,) = lean.timed(_softmax, (0,))
        assert right.check.result is CheckResult.PASSED
        (wrong,) = lean.timed(_without_maximum, (0,))
        assert wrong.is_wrong
    finally:
        lean.end()
