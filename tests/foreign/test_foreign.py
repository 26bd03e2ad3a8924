"""Foreign kernels: honest ones pass with trust `foreign`, known tricks are refused or named."""

import dataclasses
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluator_svc.devices.sites import DeviceSites
from evaluator_svc.evaluator import LocalEvaluator
from evaluator_svc.pipeline.foreign import empty_kernel
from kernel_foundry.domain.check import CheckKind, CheckResult, Trust
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.foreign import ForeignFile, ForeignRequest
from kernel_foundry.domain.request import EvaluationLimits
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import DeviceMemoryError
from kernel_foundry.sdk.foreign_file import python_of
from tests.foreign.candidates import (
    COMPILED,
    HONEST,
    INLINE,
    LEFT_BEHIND,
    LOCKED,
    TASK,
    TRANSPOSED,
    TRANSPOSED_TASK,
    TRICKS,
)

pytestmark = pytest.mark.sycl  # the device whose host torch works on

_LIMITS = EvaluationLimits(build_seconds=100.0, run_seconds=100.0, timing_seconds=0.05)


@pytest.fixture(scope="module")
def task() -> Task:
    return Task(name="scaled", reference=TASK)


@pytest.fixture
def judge(local_evaluator: Callable[[str], LocalEvaluator], task: Task):  # type: ignore[no-untyped-def]
    async def judged(text: str, task: Task = task) -> Evaluation:
        request = ForeignRequest(
            task=task, device="", source=python_of(text, "kernel.py"), limits=_LIMITS
        )
        return await local_evaluator("sycl").evaluate_foreign(request)

    return judged


def _said(verdict: Evaluation) -> str:
    return "; ".join(f"{f.message} {f.evidence}" for f in verdict.findings)


@pytest.mark.parametrize("name", HONEST)
async def test_an_honest_kernel_passes(judge, name: str) -> None:  # type: ignore[no-untyped-def]
    """With its times, and with what nobody can exclude."""
    verdict = await judge(HONEST[name])
    assert verdict.outcome is EvaluationOutcome.PASSED, _said(verdict)
    assert verdict.trust is Trust.FOREIGN
    assert verdict.speedup is not None
    assert verdict.attestation is None
    made = {check.kind for check in verdict.checks if check.result is CheckResult.PASSED}
    assert made >= {
        CheckKind.COMPARISON, CheckKind.DETERMINISM, CheckKind.INPUTS_INTACT,
        CheckKind.VALUE_RANGE, CheckKind.TIMED_OUTPUTS, CheckKind.DATA_FLOW, CheckKind.CLOCK,
        CheckKind.OUTPUT_MEMORY, CheckKind.PROCESS_STATE,
    }  # fmt: skip
    assert [c for c in verdict.checks if c.kind is CheckKind.FOREIGN_CODE]


async def test_large_transposed_outputs_pass(judge) -> None:  # type: ignore[no-untyped-def]
    """To put them in order takes longer than the call, and is no part of what the clock sees."""
    verdict = await judge(TRANSPOSED, Task(name="transposed", reference=TRANSPOSED_TASK))
    assert verdict.passed, _said(verdict)


async def test_an_empty_kernel_that_dies_counts_against_no_device(judge, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """The candidate beside it may have taken what it needs."""
    dies = dataclasses.replace(
        empty_kernel._SOURCE,
        files=(ForeignFile(path="empty.py", text="def empty(*_):\n    import os; os._exit(1)\n"),),
    )
    monkeypatch.setattr(empty_kernel, "_SOURCE", dies)
    counted: list[str] = []
    monkeypatch.setattr(DeviceSites, "failed", lambda *_: counted.append("failed"))
    with pytest.raises(DeviceMemoryError, match="beside a candidate"):
        await judge(HONEST["a plain rewrite"])
    assert not counted


async def test_torch_compile_works_inside(judge) -> None:  # type: ignore[no-untyped-def]
    """Also for the sizes that the task does not name."""
    verdict = await judge(COMPILED)
    assert verdict.passed, _said(verdict)


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++: not on PATH")
async def test_an_inline_extension_is_built(judge) -> None:  # type: ignore[no-untyped-def]
    """Ninja, the compiler and the linker work in the scratch folder."""
    verdict = await judge(INLINE)
    assert verdict.passed, _said(verdict)


async def test_its_process_is_locked_in(judge) -> None:  # type: ignore[no-untyped-def]
    """Neither the parent nor our files, the network or our modules are in reach."""
    verdict = await judge(LOCKED)
    assert verdict.passed, _said(verdict)


@pytest.mark.parametrize("name", TRICKS)
async def test_a_trick_is_refused(judge, name: str) -> None:  # type: ignore[no-untyped-def]
    text, outcomes = TRICKS[name]
    verdict = await judge(text)
    assert verdict.outcome.value in outcomes, _said(verdict)
    assert verdict.findings
    if name == "a program is left behind":
        assert not _running(LEFT_BEHIND)


def _running(argument: str) -> list[str]:
    """Return processes with an argument, once those that were killed have had time to end."""
    found: list[str] = []
    end_s = time.monotonic() + 60.0
    while time.monotonic() < end_s:
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().split(b"\0")
            except OSError:
                continue
            if argument.encode() in words:
                found.append(path.parent.name)
        if not found:
            return []
        time.sleep(0.02)
    return found
