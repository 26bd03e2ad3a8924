"""A limit ends what takes too long, and leaves nothing behind."""

import signal

import pytest

from evaluator_svc.baseline_names import COMPILE, COMPILED, MAX_AUTOTUNE
from evaluator_svc.judge import baselines
from evaluator_svc.judge.baselines import BaselineFailedError, compile_seconds
from evaluator_svc.judge.time_limit import TimeLimitError, time_limit
from tests.judge.test_baselines import drawn_set


def _for_ever() -> None:
    while True:
        pass


@pytest.fixture(autouse=True)
def _own_alarm() -> None:
    """The alarm of pytest-timeout is set again for the next test."""
    signal.setitimer(signal.ITIMER_REAL, 0)


def test_what_takes_too_long_is_ended() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(TimeLimitError, match=r"not done after 0\.01 s"), time_limit(0.01):
        _for_ever()
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_what_is_done_in_time_is_not() -> None:
    with time_limit(1000.0):
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 0
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_zero_is_no_limit() -> None:
    with time_limit(0.0):
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_compiler_that_takes_too_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    never = dict.fromkeys(COMPILED, lambda _: _for_ever())
    monkeypatch.setattr(baselines, "_PREPARE", never)
    monkeypatch.setattr(baselines, "_COMPILE_SECONDS", {"cpu": 0.01})
    monkeypatch.setattr(baselines, "_MAX_AUTOTUNE_SECONDS", 0.04)
    with pytest.raises(BaselineFailedError, match=r"torch\.compile: left out, .* after 0\.01 s"):
        compile_seconds(COMPILE, [drawn_set()], workload_count=2)
    with pytest.raises(BaselineFailedError, match=r"max_autotune: left out, .* after 0\.02 s"):
        compile_seconds(MAX_AUTOTUNE, [drawn_set()], workload_count=2)
