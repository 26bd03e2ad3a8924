"""Each probe of a device passes on what a sound one does, and fails on each planted fault."""

import asyncio
import dataclasses
from collections.abc import Callable, Mapping

import pytest

from evaluator_svc.probing import device_task as known
from evaluator_svc.probing.device import DeviceProbes
from kernel_foundry.domain.evaluation import (
    Correctness,
    Evaluation,
    EvaluationOutcome,
    WorkloadResult,
)
from kernel_foundry.domain.finding import Finding, FindingKind, Severity
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.plan.candidate_text import split
from tests.sdk.selftest.scripted import ScriptedEvaluator, candidate

_SEEDS = 3
_CORRECT = Correctness(
    max_abs_error=0.0,
    max_rel_error=0.0,
    mismatch_count=0,
    element_count=_SEEDS * known.ELEMENTS,
    first_mismatch=None,
    seed_count=_SEEDS,
    run_count=3,
    bitwise_reproducible=True,
)


def _passed() -> Evaluation:
    request = EvaluationRequest(task=known.TASK, device="", source=split(candidate("passed")))
    evaluation = asyncio.run(ScriptedEvaluator().evaluate(request))
    result = dataclasses.replace(evaluation.workloads[0], correctness=_CORRECT)
    return dataclasses.replace(evaluation, workloads=(result,))


def _ended(outcome: EvaluationOutcome, kind: FindingKind) -> Evaluation:
    finding = Finding(kind=kind, severity=Severity.ERROR, message="so it ended")
    return Evaluation(candidate="c", task="t", device="d", outcome=outcome, findings=(finding,))


def _wrong(mismatch_count: int, first: int) -> Evaluation:
    found = dataclasses.replace(_CORRECT, mismatch_count=mismatch_count, first_mismatch=first)
    ended = _ended(EvaluationOutcome.WRONG_RESULT, FindingKind.MISMATCH)
    result = WorkloadResult(workload="default", correctness=found)
    return dataclasses.replace(ended, workloads=(result,))


SOUND: Mapping[str, Evaluation] = {
    known.RIGHT: _passed(),
    known.UNWRITTEN_END: _wrong(_SEEDS, known.ELEMENTS - 1),
    known.WRONG_IN_PLACES: _wrong(_SEEDS * len(known.PLANTED), known.PLANTED[0]),
    known.ENDLESS: _ended(EvaluationOutcome.TIMEOUT, FindingKind.TIME_LIMIT),
    known.STRAY: _ended(EvaluationOutcome.CRASHED, FindingKind.ILLEGAL_ACCESS),
}


def _device(verdicts: Mapping[str, Evaluation]) -> Callable[[EvaluationRequest], Evaluation]:
    def evaluate(request: EvaluationRequest) -> Evaluation:
        return next(
            v for body, v in verdicts.items() if f"  {body}\n" in request.source.device_code
        )

    return evaluate


def _failed(verdicts: Mapping[str, Evaluation]) -> set[str]:
    probes = DeviceProbes("sycl:0", Language.SYCL, _device(verdicts)).probes()
    return {probe.name.removeprefix("device.") for probe in probes if not probe.passed}


def test_a_sound_device_passes_every_probe() -> None:
    assert _failed(SOUND) == set()


@pytest.mark.parametrize(
    ("body", "verdict", "failed"),
    [
        (known.RIGHT, _wrong(1, 0), {"known_values", "endless_kernel", "illegal_access"}),
        (known.UNWRITTEN_END, SOUND[known.RIGHT], {"poison"}),
        (known.UNWRITTEN_END, _wrong(_SEEDS - 1, known.ELEMENTS - 1), {"poison"}),
        (known.UNWRITTEN_END, _wrong(_SEEDS, 0), {"poison"}),
        (known.WRONG_IN_PLACES, _wrong(_SEEDS * len(known.PLANTED) - 1, 5), {"shared_buffers"}),
        (known.WRONG_IN_PLACES, _wrong(_SEEDS * len(known.PLANTED), 6), {"shared_buffers"}),
        (known.ENDLESS, SOUND[known.RIGHT], {"endless_kernel"}),
        (known.ENDLESS, SOUND[known.STRAY], {"endless_kernel"}),
        (known.STRAY, SOUND[known.RIGHT], {"illegal_access"}),
        (known.STRAY, SOUND[known.ENDLESS], {"illegal_access"}),
    ],
)
def test_a_fault_fails_the_probe_that_looks_for_it(
    body: str, verdict: Evaluation, failed: set[str]
) -> None:
    assert _failed({**SOUND, body: verdict}) == failed


def test_a_device_that_is_broken_after_a_fault_fails() -> None:
    judged: list[str] = []

    def evaluate(request: EvaluationRequest) -> Evaluation:
        judged.append(request.source.device_code)
        broken = any(known.STRAY in text for text in judged[:-1])
        verdicts = {**SOUND, known.RIGHT: SOUND[known.STRAY]} if broken else SOUND
        return _device(verdicts)(request)

    probes = DeviceProbes("sycl:0", Language.SYCL, evaluate).probes()
    assert [p.name for p in probes if not p.passed] == ["device.illegal_access"]
