"""The judge's own state: draws, baselines on their inputs, release and reuse."""

import itertools
from collections.abc import Callable

import pytest
import torch

from evaluator_svc.judge import Judge
from evaluator_svc.messages.draw import ALIGNMENT_BYTES, OUTPUT_SLOTS
from evaluator_svc.messages.measurement import MeasurementSettings
from kernel_foundry.domain.evaluation import StopReason
from kernel_foundry.errors import InvalidArgumentError
from tests.judge.judge_tasks import (
    EACH_MEMORY_AND_SIZE,
    SOFTMAX,
    TOLERANCE,
    RunnerSide,
    make_task,
)

Drawn = Callable[..., RunnerSide]

pytestmark = pytest.mark.parametrize("judge", EACH_MEMORY_AND_SIZE, indirect=True)


def test_slots_are_aligned_and_do_not_overlap(drawn: Drawn) -> None:
    draw = drawn(make_task(SOFTMAX)).draw

    spans = sorted((o, o + slot.size_bytes) for slot in draw.slots for o in slot.offsets)
    assert all(start % ALIGNMENT_BYTES == 0 for start, _ in spans)
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))
    assert spans[-1][1] <= draw.size_bytes
    assert [len(slot.offsets) for slot in draw.slots] == [1, OUTPUT_SLOTS]


def test_eager_is_timed_on_the_inputs_of_a_draw(judge: Judge, drawn: Drawn) -> None:
    draw = drawn(make_task(SOFTMAX)).draw
    settings = MeasurementSettings(seconds=5.0, min_samples=10, max_samples=12, flush_bytes=1 << 20)

    (baseline,) = judge.time_baselines(draw.draw, settings, ("eager",))

    assert baseline.name == "eager"
    assert 10 <= len(baseline.timing.samples_ns) <= 12
    assert baseline.timing.stop_reason in (StopReason.CONVERGED, StopReason.MAX_SAMPLES)
    assert baseline.timing.is_cold
    lower, upper = baseline.timing.ci95_ns
    assert 0 < lower <= baseline.timing.median_ns <= upper


def test_a_baseline_does_not_change_the_verdict(judge: Judge, drawn: Drawn) -> None:
    runner = drawn(make_task(SOFTMAX))
    runner.run(lambda x: torch.softmax(x, dim=-1), "x")
    judge.time_baselines(runner.draw.draw, MeasurementSettings(seconds=0.05), ("eager",))

    assert not judge.verify(runner.draw.draw).is_wrong


def test_unknown_names_are_refused(judge: Judge, drawn: Drawn) -> None:
    task = make_task(SOFTMAX)
    draw = drawn(task).draw

    with pytest.raises(InvalidArgumentError, match="no baseline 'fastest'"):
        judge.time_baselines(draw.draw, MeasurementSettings(seconds=0.1), ("fastest",))
    with pytest.raises(InvalidArgumentError, match="no draw 999"):
        judge.verify(999)
    with pytest.raises(InvalidArgumentError, match="no workload 'huge'"):
        judge.draw(task, "huge", TOLERANCE, (1,))


def test_nothing_of_a_released_draw_is_left_in_the_next(judge: Judge, drawn: Drawn) -> None:
    """Buffers are used again, so a candidate must not find what another one wrote."""
    task = make_task(SOFTMAX)
    first, descriptors = judge.draw(task, task.workloads[0].name, TOLERANCE, (1,))
    RunnerSide(judge, first, descriptors).whole[0].fill_(0x5A)
    judge.release(first.draw)

    second = drawn(task, seeds=(2,))
    content = second.whole[0]

    slot = next(s for s in second.draw.slots if s.name == "x")
    assert not bool((content[slot.offsets[0] + slot.size_bytes :] == 0x5A).any())
    assert bool(second.tensor("out", seed=0, slot=0).isnan().all())
