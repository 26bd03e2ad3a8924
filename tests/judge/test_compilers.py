"""What torch.compile may use is found out beside other work, and before anything is compiled."""

import threading

import pytest
import torch
from torch._inductor import cpu_vec_isa

from evaluator_svc.judge.compilers import compilers

CPU = torch.device("cpu")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of threads in which torch was asked for the host's instructions."""
    names: list[str] = []

    def ask() -> list[object]:
        assert _GO_ON.wait(60.0)
        names.append(threading.current_thread().name)
        return []

    _GO_ON.clear()
    monkeypatch.setattr(cpu_vec_isa, "valid_vec_isa_list", ask)
    return names


_GO_ON = threading.Event()


def test_instructions_are_found_beside_other_work_and_waited_for(asked: list[str]) -> None:
    with compilers(CPU, are_wanted=True, at_once=False) as wait_for_compilers:
        assert asked == []  # it cannot have gone on, and this did
        _GO_ON.set()
        wait_for_compilers()
        (name,) = asked
        assert name != threading.current_thread().name


@pytest.mark.parametrize(("device", "are_wanted"), [("cuda", True), ("cpu", False)])
def test_nobody_is_asked_where_nothing_is_compiled_for_the_host(
    asked: list[str], device: str, are_wanted: bool
) -> None:
    _GO_ON.set()
    with compilers(torch.device(device), are_wanted=are_wanted, at_once=False) as wait:
        wait()
    assert asked == []
