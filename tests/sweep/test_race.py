"""Racing, on made-up samples."""

import pytest

from evaluator_svc.messages.runner import TimeReply
from evaluator_svc.pipeline.sweep.race import Race, with_block
from evaluator_svc.pipeline.timing.measurement import timing_of
from kernel_foundry.domain.evaluation import EvaluationOutcome, StopReason
from kernel_foundry.domain.sweep import (
    ConfigurationResult,
    ConfigurationTimes,
    ConfigurationTiming,
    Validity,
)


def _timed(*samples_ns: float) -> TimeReply:
    return TimeReply(
        samples_ns=samples_ns,
        device_ns=(),
        stop_reason=StopReason.MAX_SAMPLES,
        warmup_count=1,
        discarded_count=0,
        kept=(),
    )


def _result(*samples_ns: float, also: tuple[float, ...] = ()) -> ConfigurationResult:
    blocks = [_timed(*samples_ns), *([_timed(*also)] if also else [])]
    return ConfigurationResult(
        configuration=(),
        validity=Validity.CORRECT,
        outcome=EvaluationOutcome.PASSED,
        times=ConfigurationTimes(),
        timings=tuple(
            ConfigurationTiming(workload=str(i), timing=timing_of(block, is_cold=True))
            for i, block in enumerate(blocks)
        ),
        finished_unix_s=0.0,
        total=3,
    )


def test_only_a_lower_bound_above_the_best_upper_bound_ends_the_race() -> None:
    race = Race()
    assert race.enter(1, _result(*[10, 11, 12] * 2)) == {}
    assert race.enter(2, _result(*[12, 13, 14] * 2)) == {}  # its best is the incumbent's worst
    out = race.enter(3, _result(*[12.1, 13, 14] * 2))
    assert set(out) == {3}
    assert out[3].raced_out
    assert race.result(3) is None
    assert race.incumbent_upper_ns == (12,)


def test_new_incumbent_drops_the_old_ones() -> None:
    race = Race()
    race.enter(1, _result(*[10, 11, 12] * 2))
    race.enter(2, _result(*[11, 12, 13] * 2))
    assert set(race.enter(3, _result(*[5, 6, 7] * 2))) == {1, 2}
    assert [c.median_ns for c in race.contenders()] == [pytest.approx(6)]
    assert race.unsettled() == []  # nobody to race against


def test_a_single_time_drops_who_is_clearly_slower() -> None:
    """It is all that is taken of a configuration whose run was slow, too."""
    race = Race()
    race.enter(1, _result(*[10.0] * 12))
    assert race.enter(2, _result(14.0)) == {}
    assert set(race.enter(3, _result(16.0))) == {3}
    assert race.unsettled() == [2]


def test_nobody_is_dropped_on_the_word_of_a_few_samples_when_more_are_to_come() -> None:
    race = Race()
    race.enter(1, _result(*[10, 11, 12] * 2))
    better = _result(*[5, 6, 7] * 2)
    assert race.would_lead(better)
    assert race.enter(2, better, drops=False) == {}
    assert set(race.enter(2, _result(*[6.0] * 12))) == {1}


def test_contender_is_unsettled_until_its_median_is_known() -> None:
    race = Race()
    race.enter(1, _result(*[10.0] * 8))
    race.enter(2, _result(9.0, 9.9, 10.0, 10.2, 11.0))
    race.enter(3, _result(*(9.0 + 0.05 * i for i in range(40))))
    assert race.unsettled() == [2]
    race.withdraw(2)
    assert race.unsettled() == []


def test_several_workloads_count_by_their_geometric_mean() -> None:
    race = Race()
    race.enter(1, _result(*[4.0] * 6, also=(9.0,) * 6))
    slow_on_one = race.enter(2, _result(*[1.0] * 6, also=(100.0,) * 6))
    assert set(slow_on_one) == {2}
    assert slow_on_one[2].median_ns == pytest.approx(10)
    assert race.incumbent_upper_ns == (4, 9)


def test_blocks_are_joined() -> None:
    joined = with_block(_result(3.0, 1.0).timings, (_timed(2.0, 2.0, 2.0),))
    timing = joined[0].timing
    assert timing.samples_ns == (3.0, 1.0, 2.0, 2.0, 2.0)
    assert timing.median_ns == 2.0
    assert timing.warmup_count == 2
