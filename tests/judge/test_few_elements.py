"""Outputs of few elements: where a sum cancels, they are held to what the reference keeps of it."""

from collections.abc import Callable

from evaluator_svc.judge import Judge
from kernel_foundry.domain.task import Tolerance
from tests.judge.judge_tasks import RunnerSide, make_task

Draw = Callable[..., RunnerSide]

_MEAN = "def forward(self, x):\n    return x.mean()"
_VALUE = 1e-6
"""Of the mean of elements that are a million times as large."""
_OF_SUMS = 4e-10
"""What float32 may lose in the sum, whatever comes out."""
_OF_VALUE = 1e-2 * _VALUE


def _drawn(draw: Draw, inputs: str, tolerance: Tolerance | None = None) -> RunnerSide:
    return draw(make_task(_MEAN, inputs=inputs, rows=512, cols=512, tolerance=tolerance))


def _is_wrong(judge: Judge, side: RunnerSide, error: float) -> bool:
    side.run(lambda x: (x.double().mean() + error).float(), "x")
    return judge.verify(side.draw.draw).is_wrong


_CANCELS = f"[(lambda x: x - x.mean() + {_VALUE})(torch.randn(rows, cols))]"


def test_a_mean_that_cancels_may_lose_what_the_reference_loses(judge: Judge, drawn: Draw) -> None:
    side = _drawn(drawn, _CANCELS)
    assert not _is_wrong(judge, side, _OF_SUMS)
    assert _is_wrong(judge, side, _OF_VALUE)


def test_a_mean_that_does_not_cancel_may_not(judge: Judge, drawn: Draw) -> None:
    side = _drawn(drawn, f"[{_VALUE} * (1.0 + torch.rand(rows, cols))]")
    assert _is_wrong(judge, side, _OF_SUMS)


def test_a_tolerance_given_by_hand_stays(judge: Judge, drawn: Draw) -> None:
    side = _drawn(drawn, _CANCELS, Tolerance(rtol=1e-4, atol=1e-12))
    assert _is_wrong(judge, side, _OF_SUMS)
