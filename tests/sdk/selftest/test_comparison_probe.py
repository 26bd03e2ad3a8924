"""The comparison finds every planted difference, and one that misses any is found out."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from evaluator_svc.judge.comparison.comparison_probe import probe_comparison
from evaluator_svc.judge.memory.host_memory import HostMemory
from evaluator_svc.probing.device import comparison_probe

Faulty = Callable[[HostMemory, dict[str, Any]], Any]


class _FaultyMemory(HostMemory):
    def __init__(self, fault: Faulty) -> None:
        super().__init__()
        self._fault = fault

    def compare(self, **arguments: Any) -> Any:
        return self._fault(HostMemory(), arguments)


def test_the_native_comparison_counts_every_planted_difference() -> None:
    probe = comparison_probe(probe_comparison(HostMemory()))
    assert probe.passed, probe.detail


def _misses_the_last(memory: HostMemory, arguments: dict[str, Any]) -> Any:
    return memory.compare(**{**arguments, "count": arguments["count"] - 1})


def _too_wide(memory: HostMemory, arguments: dict[str, Any]) -> Any:
    return memory.compare(**{**arguments, "rtol": 0.5})


def _flushes_denormals(memory: HostMemory, arguments: dict[str, Any]) -> Any:
    return memory.compare(**{**arguments, "atol": 1e-30})


def _counts_one_too_many(memory: HostMemory, arguments: dict[str, Any]) -> Any:
    found = memory.compare(**arguments)
    return SimpleNamespace(
        mismatch_count=found.mismatch_count + 1, first_mismatch=found.first_mismatch
    )


def _misplaces(memory: HostMemory, arguments: dict[str, Any]) -> Any:
    found = memory.compare(**arguments)
    return SimpleNamespace(
        mismatch_count=found.mismatch_count, first_mismatch=found.first_mismatch + 1
    )


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (_misses_the_last, "last element"),
        (_too_wide, "first element"),
        (_flushes_denormals, "denormal"),
        (_counts_one_too_many, "1 of 0 nothing"),
        (_misplaces, "float32"),
    ],
)
def test_a_comparison_with_a_fault_fails_the_probe(fault: Faulty, told: str) -> None:
    probe = comparison_probe(probe_comparison(_FaultyMemory(fault)))
    assert not probe.passed
    assert told in probe.detail
