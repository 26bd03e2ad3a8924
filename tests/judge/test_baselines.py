"""Baselines of an admission are measured until two measurements agree."""

from collections.abc import Iterator, Sequence

import pytest
import torch

from evaluator_svc.baseline_names import EAGER
from evaluator_svc.judge import baselines, threads
from evaluator_svc.judge.baselines import settled_baseline
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.memory.judge_memory import open_memory
from evaluator_svc.messages.measurement import MeasurementSettings
from kernel_foundry.domain.evaluation import Baseline, StopReason, Timing
from tests.domain_values import timing_of
from tests.judge.judge_tasks import SOFTMAX, make_task, prepare

SETTINGS = MeasurementSettings(seconds=0.01, flush_bytes=0)


def drawn_set() -> InputSet:
    task = make_task(SOFTMAX)
    return prepare(task).input_set(1)


def settled(monkeypatch: pytest.MonkeyPatch, medians_ns: Sequence[float]) -> Baseline:
    """Return what becomes of measurements with these medians."""

    def timings(*_: object, rounds: int) -> Iterator[Timing]:
        for median_ns in medians_ns[:rounds]:
            yield timing_of(median_ns)

    monkeypatch.setattr(baselines, "_timings", timings)
    return settled_baseline(EAGER, (), SETTINGS, open_memory("null:0"))


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
    found = settled_baseline(EAGER, [drawn_set()], SETTINGS, open_memory("null:0"))

    assert found.round_count >= 2
    assert found.timing.median_ns > 0
    assert found.scatter >= 0


def settled_on_two_threads(
    monkeypatch: pytest.MonkeyPatch, made_up: dict[int, Timing]
) -> tuple[Baseline, list[int]]:
    """Return eager's time from measurements made up by threads, and each one's threads."""
    before = torch.get_num_threads()
    seen, taken = [2], list[int]()

    def timing(_measurement: object, _settings: MeasurementSettings) -> Timing:
        taken.append(seen[-1])
        return made_up[seen[-1]]

    with monkeypatch.context() as patch:
        patch.setattr(torch, "get_num_threads", lambda: seen[-1])
        patch.setattr(threads, "set_threads", seen.append)
        patch.setattr(baselines, "_timing", timing)
        found = settled_baseline(EAGER, [drawn_set()], SETTINGS, open_memory("null:0"))
    assert seen[-1] == 2
    assert torch.get_num_threads() == before
    return found, taken


def test_eager_is_timed_on_one_thread_too_and_the_faster_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a loaded host threads that wait for each other are many times slower than one."""
    made_up = {2: timing_of(1500.0), 1: timing_of(70.0)}
    found, taken = settled_on_two_threads(monkeypatch, made_up)

    assert taken == [2, 1, 2, 1]
    assert found.timing.median_ns == 70.0


def test_one_thread_that_does_not_come_near_is_not_timed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slower = timing_of(150.0, stop_reason=StopReason.SLOWER_THAN_INCUMBENT)
    found, taken = settled_on_two_threads(monkeypatch, {2: timing_of(70.0), 1: slower})

    assert taken == [2, 1, 2]
    assert (found.round_count, found.timing.median_ns) == (2, 70.0)
