"""A second verdict is one on the record's candidate, task and seeds, or it says nothing."""

import dataclasses

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from evaluator_svc.signing import signed
from kernel_foundry.domain.attestation import WorkloadSeeds
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.task import Tolerance
from kernel_foundry.evidence.record import EvidenceRecord, record_of
from kernel_foundry.sdk.verification.statement import Agreement
from kernel_foundry.sdk.verification.verify import verification
from tests.evidence.conftest import DRAFT, SOURCE, TASK, evaluate


def _differing(record: EvidenceRecord, again: Evaluation) -> dict[str, str]:
    verified = verification(record, again)
    return {s.subject: s.note for s in verified.statements if s.agreement is Agreement.DIFFERS}


def test_one_that_is_signed_with_another_key_agrees(record: EvidenceRecord) -> None:
    again = signed(TASK, SOURCE, evaluate(), Ed25519PrivateKey.generate())
    assert _differing(record, again) == {}


@pytest.mark.parametrize(
    ("what", "changes"),
    [
        ("another candidate", {"candidate": "f" * 64}),
        ("another task", {"task": "0" * 64}),
        ("other seeds", {"attestation": dataclasses.replace(DRAFT, seeds=())}),
        (
            "other seeds",
            {
                "attestation": dataclasses.replace(
                    DRAFT,
                    seeds=(DRAFT.seeds[0], WorkloadSeeds(workload="n=9", seeds=(1, 2, 4))),
                )
            },
        ),
    ],
)
def test_one_on_something_else_differs(
    record: EvidenceRecord, what: str, changes: dict[str, object]
) -> None:
    again = dataclasses.replace(evaluate(), **changes)
    assert what in _differing(record, again)["second verdict"]


def test_a_signature_that_is_none_differs_and_vouches_for_no_key(
    record: EvidenceRecord, key: Ed25519PrivateKey
) -> None:
    """Whoever answers can write the record's key beside anything."""
    whole = signed(TASK, SOURCE, evaluate(), key)
    key_line = {s.subject: s for s in verification(record, whole).statements}["key"]
    assert key_line.agreement is Agreement.AGREES
    for changes in ({"fitness": 9.0}, {"attestation": _unsigned(whole, signature="00" * 64)}):
        again = dataclasses.replace(whole, **changes)
        verified = verification(record, again)
        lines = {s.subject: s for s in verified.statements}
        assert "not its key's" in lines["second verdict"].note
        assert lines["key"].agreement is Agreement.NOT_COMPARABLE
        assert not verified.agrees
    unsigned = dataclasses.replace(whole, attestation=_unsigned(whole, signature=""))
    lines = {s.subject: s for s in verification(record, unsigned).statements}
    assert lines["key"].agreement is Agreement.NOT_COMPARABLE


def _unsigned(evaluation: Evaluation, signature: str) -> object:
    return dataclasses.replace(evaluation.attestation, signature=signature)


def test_what_makes_a_task_unusual_is_told(key: Ed25519PrivateKey) -> None:
    """Under a plain name a task may be far easier than the one that people know."""

    def lines(**changes: object) -> dict[str, str]:
        task = dataclasses.replace(TASK, **changes)
        judged = dataclasses.replace(evaluate(), task=task.digest)
        record = record_of(task, SOURCE, signed(task, SOURCE, judged, key))
        verified = verification(record, None, own_key=record.attestation.public_key)
        assert verified.agrees
        return {s.subject: s.recorded or s.note for s in verified.statements}

    plain = lines()
    assert not any(subject.startswith("task setting") for subject in plain)
    found = lines(
        tolerance=Tolerance(rtol=0.5, atol=0.1),
        least_bits=4.0,
        admit_degenerate=True,
        constants=("x",),
        training=False,
    )
    assert "evaluation mode" in found["task setting training"]
    assert found["task setting tolerance"].startswith("rtol 0.5, atol 0.1, by hand")
    assert found["task setting least_bits"].startswith("4, ")
    assert "trivial answers" in found["task setting admit_degenerate"]
    assert found["task setting constants"].startswith("x:")
    alone = lines(check="is_fine", compare=False)
    assert "nothing else tells which outputs are right" in alone["task setting check"]
