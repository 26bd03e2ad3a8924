"""A verdict as a real evaluator gives it, signed with a key of the test's own."""

import asyncio
import dataclasses
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from evaluator_svc.signing import signed
from kernel_foundry.domain.attestation import Attestation, WorkloadSeeds
from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.check import Check, CheckKind, CheckResult
from kernel_foundry.domain.evaluation import Evaluation, Fact, PrecisionAudit
from kernel_foundry.domain.finding import Figure
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.task import Size, Task, Workload
from kernel_foundry.evidence.record import EvidenceRecord, record_of
from kernel_foundry.testing.evaluator import FakeEvaluator

TASK = Task(
    name="double",
    reference="class Model: ...\n",
    workloads=(
        Workload(name="n=8", sizes=(Size(name="n", value=8),)),
        Workload(name="n=9", sizes=(Size(name="n", value=9),), held_out=True),
    ),
)
SOURCE = KernelSource(language=Language.SYCL, device_code="// 2 · x\n", plan="pass\n")
FACTS = {
    "device": "a device, driver 1",
    "threads": "2",
    "compiler": "a compiler 1",
    "torch": "2.13",
    "Kernel Foundry": "0.1.0",
}
CHECKS = (
    Check(
        kind=CheckKind.COMPARISON,
        result=CheckResult.PASSED,
        workload="n=8",
        figures=(Figure(name="largest_error", value=1.25e-7),),
    ),
    Check(kind=CheckKind.DETERMINISM, result=CheckResult.PASSED, workload="n=8"),
    Check(kind=CheckKind.CLOCK, result=CheckResult.SUSPECT, note="two samples are too quick"),
)
AUDIT = PrecisionAudit(
    median_error=1e-8,
    p99_error=6e-8,
    max_error=1.2e-7,
    rms_error=2e-8,
    reference_rms_error=2e-8,
    effective_bits=25.6,
    element_count=24,
)

DRAFT = Attestation(
    seeds=tuple(WorkloadSeeds(workload=w.name, seeds=(1, 2, 3)) for w in TASK.workloads),
    seeds_given=False,
    signed_unix_s=0.0,
    digest="",
    public_key="",
    signature="",
)
"""What there is to sign for."""


def evaluate(source: KernelSource = SOURCE, **changes: Any) -> Evaluation:
    """Return an unsigned verdict with all that evidence has."""
    request = EvaluationRequest(task=TASK, device="", source=source)
    evaluation = asyncio.run(FakeEvaluator().evaluate(request))
    results = tuple(
        dataclasses.replace(r, correctness=dataclasses.replace(r.correctness, precision=AUDIT))
        for r in evaluation.workloads
    )
    facts = tuple(Fact(name=name, value=value) for name, value in FACTS.items())
    whole = {"workloads": results, "evidence": facts, "checks": CHECKS, "attestation": DRAFT}
    return dataclasses.replace(evaluation, **(whole | changes))


@pytest.fixture
def key() -> Ed25519PrivateKey:
    return Ed25519PrivateKey.generate()


@pytest.fixture
def public_key(key: Ed25519PrivateKey) -> str:
    return key.public_key().public_bytes_raw().hex()


@pytest.fixture
def evaluation(key: Ed25519PrivateKey) -> Evaluation:
    return signed(TASK, SOURCE, evaluate(), key)


@pytest.fixture
def record(evaluation: Evaluation) -> EvidenceRecord:
    return record_of(TASK, SOURCE, evaluation)
