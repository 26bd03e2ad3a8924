"""A real evaluator signs what passes, and judges it again on the same seeds."""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from evaluator_svc.evaluator import LocalEvaluator
from evaluator_svc.requests.given_seeds import check_seeds
from evaluator_svc.service import evaluator_service
from evaluator_svc.signing import own_public_key
from kernel_foundry.domain.attestation import WorkloadSeeds
from kernel_foundry.domain.check import CheckKind
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.request import EvaluationLimits, EvaluationRequest
from kernel_foundry.domain.task import Size, Task, Workload
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.evidence.record import EvidenceRecord, record_of
from kernel_foundry.plan.candidate_text import split
from kernel_foundry.rpc.evaluator import RemoteEvaluator
from kernel_foundry.rpc.server import running
from kernel_foundry.sdk.verification.compare import compare, is_about_times
from kernel_foundry.sdk.verification.signature import check_integrity
from kernel_foundry.sdk.verification.statement import Agreement, holds
from kernel_foundry.sdk.verification.verify import request_again
from tests.cli import conftest as cli
from tests.evaluator import conftest as real
from tests.quick_settings import quick_settings
from tests.shared_evaluator import Shared

T = TypeVar("T")

TASK = Task(
    name="relu",
    reference=cli.TASK,
    workloads=(
        Workload(name="default"),
        Workload(name="odd", sizes=(Size(name="rows", value=3),), held_out=True),
    ),
)
LIMITS = EvaluationLimits(timing_seconds=0.05)


def _request(text: str = cli.CANDIDATE, **changes: object) -> EvaluationRequest:
    request = EvaluationRequest(task=TASK, device="null", source=split(text), limits=LIMITS)
    return dataclasses.replace(request, **changes)


async def _remote(
    evaluator: LocalEvaluator, folder: Path, work: Callable[[RemoteEvaluator], Awaitable[T]]
) -> T:
    """Return what comes of `work` with an evaluator behind a socket."""
    service = evaluator_service(Shared(evaluator))
    async with running([service], f"unix:{folder}/s", grace_s=1.0) as target:
        remote = RemoteEvaluator(target)
        try:
            return await work(remote)
        finally:
            await remote.close()


def _numbers_differ(record: EvidenceRecord, again: Evaluation) -> list[str]:
    statements = [s for s in compare(record, again) if not is_about_times(s)]
    return [str(s) for s in statements if s.agreement is Agreement.DIFFERS]


def test_a_verdict_from_afar_is_signed_and_comes_again(
    local_evaluator: Callable[[str], LocalEvaluator], tmp_path: Path
) -> None:
    """What is signed holds over the wire; the same seeds give the same numbers."""
    wrong = _request(cli.CANDIDATE.replace("null_relu", "null_copy"))

    async def judge(remote: RemoteEvaluator) -> tuple[EvidenceRecord, Evaluation, Evaluation]:
        record = record_of(TASK, split(cli.CANDIDATE), await remote.evaluate(_request()))
        again = await remote.evaluate(request_again(record))
        return record, again, await remote.evaluate(wrong)

    record, again, failed = asyncio.run(_remote(local_evaluator("null"), tmp_path, judge))
    assert holds(check_integrity(record)), check_integrity(record)
    attestation = record.attestation
    assert attestation.public_key == own_public_key(quick_settings().signing_key)
    assert [(s.workload, len(s.seeds)) for s in attestation.seeds] == [("default", 3), ("odd", 3)]
    assert not attestation.seeds_given
    facts = {fact.name for fact in record.evaluation.evidence}
    assert facts >= {"device", "compiler", "torch", "threads", "Kernel Foundry", "limits",
                     "isolation", "baselines", "seeds", "clock"}  # fmt: skip
    assert again.attestation.seeds == attestation.seeds
    assert again.attestation.seeds_given
    assert _numbers_differ(record, again) == []
    assert failed.attestation is None
    assert not failed.passed


def test_seeds_are_fresh_where_none_are_given(
    local_evaluator: Callable[[str], LocalEvaluator], tmp_path: Path
) -> None:
    async def judge(remote: RemoteEvaluator) -> list[Evaluation]:
        return [await remote.evaluate(_request()) for _ in range(2)]

    first, second = asyncio.run(_remote(local_evaluator("null"), tmp_path, judge))
    drawn = {s for e in (first, second) for given in e.attestation.seeds for s in given.seeds}
    assert len(drawn) == 12


@pytest.mark.parametrize(
    "seeds",
    [
        (WorkloadSeeds(workload="default", seeds=()),),
        (WorkloadSeeds(workload="default", seeds=(1, 2, 3, 4)),),
        (WorkloadSeeds(workload="default", seeds=(1, 2, -3)),),
        (WorkloadSeeds(workload="elsewhere", seeds=(1, 2, 3)),),
        (WorkloadSeeds(workload="odd", seeds=(1, 2, 3)),) * 2,
    ],
)
def test_seeds_that_no_evaluation_draws_are_refused(seeds: tuple[WorkloadSeeds, ...]) -> None:
    with pytest.raises(InvalidArgumentError, match="seeds of"):
        check_seeds(_request(seeds=seeds))


@pytest.mark.sycl
def test_a_real_kernel_comes_again_to_the_bit(
    local_evaluator: Callable[[str], LocalEvaluator],
) -> None:
    evaluator = local_evaluator("sycl")

    async def judge() -> tuple[EvidenceRecord, Evaluation]:
        request = EvaluationRequest(
            task=real.TASK, device="sycl", source=split(real.RIGHT), limits=real.LIMITS
        )
        evaluation = await evaluator.evaluate(request)
        record = record_of(real.TASK, split(real.RIGHT), evaluation)
        again = await evaluator.evaluate(request_again(record))
        return record, again

    record, again = asyncio.run(judge())
    assert holds(check_integrity(record))
    assert {CheckKind.COMPARISON, CheckKind.DETERMINISM} <= {
        check.kind for check in record.evaluation.checks
    }
    assert _numbers_differ(record, again) == []
    errors = [s for s in compare(record, again) if s.subject.startswith("errors on")]
    assert [s.note for s in errors] == ["to the bit", "to the bit"]
