"""What torch.compile may use is found out beside other work, and before anything is compiled."""

import threading

import pytest
import torch

from evaluator_svc.judge.compilers import compilers

CPU = torch.device("cpu")
_INSTRUCTIONS = "torch._inductor.cpu_vec_isa"
"""By name: it takes seconds to import, and every process reads every test file."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of threads in which torch was asked for the host's instructions."""
    names: list[str] = []

    def ask() -> list[object]:
        assert _GO_ON.wait(60.0)
        names.append(threading.current_thread().name)
        return []

    _GO_ON.clear()
    monkeypatch.setattr(f"{_INSTRUCTIONS}.supported_vec_isa_list", [])
    monkeypatch.setattr(f"{_INSTRUCTIONS}.valid_vec_isa_list", ask)
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


class _Instructions:
    """A set of vector instructions as torch has it: true if a program with them works."""

    def __init__(self, names: str, *, work: bool, tried: list[str]) -> None:
        self._names, self._work, self._tried = names, work, tried

    def __str__(self) -> str:
        return self._names

    def __bool__(self) -> bool:
        self._tried.append(self._names)
        return self._work


def test_no_instructions_are_tried_but_the_best_until_some_work(
    asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program takes the compiler seconds, and torch would build one for each set."""
    tried: list[str] = []
    sets = [
        _Instructions(names, work=work, tried=tried)
        for names, work in (
            ("avx512 amx_tile", True),  # the processor has no such tiles
            ("avx512 avx512_vnni", False),  # the compiler does not know them
            ("avx512", True),
            ("avx2", True),
        )
    ]
    kept = sets[2]
    monkeypatch.setattr(f"{_INSTRUCTIONS}.supported_vec_isa_list", sets)
    monkeypatch.setattr(
        f"{_INSTRUCTIONS}.x86_isa_checker", lambda: ["avx2", "avx512", "avx512_vnni"]
    )
    _GO_ON.set()
    with compilers(CPU, are_wanted=True, at_once=False) as wait:
        wait()
    assert tried == ["avx512 avx512_vnni", "avx512"]
    assert sets == [kept]
    assert len(asked) == 1
