"""Baselines of an admission are measured until two measurements agree."""

from collections.abc import Iterator, Sequence

import pytest
import torch

from evaluator_svc.judge import baselines
from evaluator_svc.judge.baselines import EAGER, settled_baseline
from evaluator_svc.judge.draws.input_set import InputSet
from evaluator_svc.judge.draws.prepared import PreparedWorkload
from evaluator_svc.judge.memory.judge_memory import open_memory
from evaluator_svc.messages.exchange import MeasurePlan
from kernel_foundry.domain.evaluation import Baseline, StopReason, Timing
from tests.judge.judge_tasks import SOFTMAX, make_task

PLAN = MeasurePlan(seconds=0.01, flush_bytes=0)


def drawn_set() -> InputSet:
    """Return a set of a real task."""
    task = make_task(SOFTMAX)
    return PreparedWorkload(
        task, task.workloads[0], device=torch.device("cpu"), memory_bytes=8 << 30
    ).input_set(1)


def settled(monkeypatch: pytest.MonkeyPatch, medians_ns: Sequence[float]) -> Baseline:
    """Return what becomes of measurements with these medians."""

    def timings(*_: object, rounds: int) -> Iterator[Timing]:
        for median_ns in medians_ns[:rounds]:
            yield Timing(
                samples_ns=(median_ns,),
                median_ns=median_ns,
                ci95_ns=(median_ns, median_ns),
                stop_reason=StopReason.CONVERGED,
                is_cold=True,
                warmup_count=0,
                discarded_count=0,
            )

    monkeypatch.setattr(baselines, "_timings", timings)
    return settled_baseline(EAGER, (), PLAN, open_memory("null:0"))


@pytest.mark.parametrize(
    ("medians_ns", "rounds", "median_ns", "scatter"),
    [
        pytest.param((100, 101, 50), 2, 100, 0.01, id="they agree"),
        pytest.param((400, 101, 100, 50), 3, 100, 3.0, id="the first was disturbed"),
        pytest.param((100, 400, 101, 50), 3, 100, 3.0, id="the second was disturbed"),
        pytest.param((100, 140, 190, 250, 310, 100), 5, 100, 2.1, id="they never agree"),
    ],
)
def test_two_measurements_have_to_agree(
    monkeypatch: pytest.MonkeyPatch,
    medians_ns: Sequence[float],
    rounds: int,
    median_ns: float,
    scatter: float,
) -> None:
    found = settled(monkeypatch, medians_ns)

    assert (found.round_count, found.timing.median_ns) == (rounds, median_ns)
    assert found.scatter == pytest.approx(scatter)


def test_a_real_baseline_is_measured_more_than_once() -> None:
    found = settled_baseline(EAGER, [drawn_set()], PLAN, open_memory("null:0"))

    assert found.round_count >= 2
    assert found.timing.median_ns > 0
    assert found.scatter >= 0
