"""Library calls on a CPU have as many threads as are faster in the moment."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import torch

from evaluator_svc.hardware.openmp import set_threads
from evaluator_svc.runner import library_threads
from evaluator_svc.runner.library_calls import LibraryCalls
from evaluator_svc.runner.library_threads import choose_threads

_EVERY = 3


class _Clock:
    """Takes as long for a call as is said of its number of threads."""

    def __init__(self, seconds: dict[int, float]) -> None:
        self._seconds = seconds
        self._now = 0.0
        self.calls: list[int] = []

    def monotonic(self) -> float:
        return self._now

    def run(self) -> None:
        self.calls.append(torch.get_num_threads())
        self._now += self._seconds[self.calls[-1]]


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    before = torch.get_num_threads()
    set_threads(_EVERY)
    library_threads._every.cache_clear()
    yield
    library_threads._every.cache_clear()
    set_threads(before)


@pytest.mark.parametrize(("every", "one", "chosen"), [(0.01, 0.02, _EVERY), (0.06, 0.02, 1)])
def test_the_faster_number_of_threads_stays(monkeypatch, every, one, chosen):
    clock = _Clock({_EVERY: every, 1: one})
    monkeypatch.setattr(library_threads, "time", clock)
    assert choose_threads(clock.run) == chosen == torch.get_num_threads()
    assert clock.calls == [_EVERY, 1] * 3


def test_slow_calls_are_tried_once_and_endless_ones_not_on_one_thread(monkeypatch):
    slow, endless = _Clock({_EVERY: 0.3, 1: 0.25}), _Clock({_EVERY: 60.0})
    monkeypatch.setattr(library_threads, "time", slow)
    assert choose_threads(slow.run) == 1
    monkeypatch.setattr(library_threads, "time", endless)
    assert choose_threads(endless.run) == _EVERY
    assert (slow.calls, endless.calls) == ([_EVERY, 1], [_EVERY])


def test_each_plan_of_a_process_has_its_own_choice(monkeypatch):
    """Threads are the process's, which runs all workloads and configurations."""
    small, large = _Clock({_EVERY: 0.02, 1: 0.01}), _Clock({_EVERY: 0.01, 1: 0.02})
    calls = [LibraryCalls(SimpleNamespace(is_host_memory=True), 0, (), tf32=False) for _ in "ab"]
    chosen = []
    for library, clock in zip(calls * 2, (small, large) * 2, strict=True):
        monkeypatch.setattr(library_threads, "time", clock)
        library.choose_threads(clock.run)
        chosen.append(torch.get_num_threads())
    assert chosen == [1, _EVERY] * 2
    assert small.calls == large.calls == [_EVERY, 1] * 3  # once for each


def test_a_call_that_fails_leaves_no_lesser_number_behind(monkeypatch):
    clock = _Clock({_EVERY: 0.01})  # on one thread it fails
    monkeypatch.setattr(library_threads, "time", clock)
    with pytest.raises(KeyError):
        choose_threads(clock.run)
    assert torch.get_num_threads() == _EVERY


def test_a_single_thread_leaves_no_choice(monkeypatch):
    set_threads(1)
    clock = _Clock({})
    monkeypatch.setattr(library_threads, "time", clock)
    assert choose_threads(clock.run) == 1
    assert clock.calls == []
