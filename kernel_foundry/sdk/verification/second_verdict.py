"""Whether a second verdict is on what a record is on, and whose it is.

An evaluator that is asked may be a stranger's: nothing of its answer is taken for granted.
"""

from collections.abc import Iterator

from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.evidence.canonical import NotCanonicalError
from kernel_foundry.evidence.record import EvidenceRecord, record_of
from kernel_foundry.sdk.verification.signature import is_signed
from kernel_foundry.sdk.verification.statement import Agreement, Statement

_SUBJECT = "second verdict"


def check_second_verdict(record: EvidenceRecord, again: Evaluation) -> Iterator[Statement]:
    """Yield in what a second verdict is not one on the record's candidate, task and seeds."""
    if again.candidate != record.source.digest:
        yield _other("candidate", record.source.digest[:16], again.candidate[:16])
    if again.task != record.task.digest:
        yield _other("task", record.task.digest[:16], again.task[:16])
    if again.attestation is None:
        return
    recorded = {given.workload: given.seeds for given in record.attestation.seeds}
    found = {given.workload: given.seeds for given in again.attestation.seeds}
    if differing := [name for name, seeds in recorded.items() if found.get(name) != seeds]:
        yield _other("seeds", recorded="", found=f"of {', '.join(differing)}")
    if again.attestation.signature and not _is_whole(record, again):
        note = "its signature is not its key's, or not of this verdict"
        yield Statement(subject=_SUBJECT, agreement=Agreement.DIFFERS, note=note)


def verified_key(record: EvidenceRecord, again: Evaluation) -> str:
    """Return the public key that a second verdict is signed with; "" where that does not hold."""
    if again.attestation is None or not _is_whole(record, again):
        return ""
    return again.attestation.public_key


def _is_whole(record: EvidenceRecord, again: Evaluation) -> bool:
    if again.candidate != record.source.digest:
        return False
    second = record_of(record.task, record.source, again)
    try:
        digest = second.digest()
    except NotCanonicalError:
        return False
    return digest == second.attestation.digest and is_signed(second.attestation)


def _other(what: str, recorded: str, found: str) -> Statement:
    return Statement(
        subject=_SUBJECT,
        agreement=Agreement.DIFFERS,
        recorded=recorded,
        found=found,
        note=f"the evaluator judged another {what} than it was asked to"
        if what != "seeds"
        else "the evaluator judged on other seeds than it was asked to",
    )
