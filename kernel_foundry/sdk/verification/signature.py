"""Whether a record is what an evaluator signed, and with whose key; runs nothing.

Each fault has a message of its own. Records are signed in `evaluator_svc/signing.py`.
"""

import math
from collections.abc import Iterator
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from kernel_foundry.domain.attestation import Attestation
from kernel_foundry.domain.evaluation import Timing, WorkloadResult
from kernel_foundry.domain.median import FEWEST_RANKED, median_interval
from kernel_foundry.evidence.fingerprint import fingerprint
from kernel_foundry.evidence.record import EvidenceRecord
from kernel_foundry.sdk.verification.statement import Agreement, Statement

KEY: Final = "key"
"""Subject of the statement about whose key signed."""

_NAME_IS_FREE: Final = "its digest does not cover its name, which whoever made the record chose"


def is_signed(attestation: Attestation) -> bool:
    """Return whether the signature is the key's, of the digest that stands beside it."""
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(attestation.public_key))
        key.verify(bytes.fromhex(attestation.signature), bytes.fromhex(attestation.digest))
    except (ValueError, InvalidSignature):
        return False
    return True


def check_integrity(record: EvidenceRecord) -> tuple[Statement, ...]:
    """Return whether the parts of a record fit each other, its digest and its signature."""
    digest, attestation = record.digest(), record.attestation
    fits, signed = digest == attestation.digest, is_signed(attestation)
    return (
        _identity("task", record.task.digest, record.evaluation.task, _NAME_IS_FREE),
        _identity("candidate", record.source.digest, record.evaluation.candidate),
        *_samples(record),
        _digest(digest, attestation, signed=signed),
        _signature(attestation, fits=fits, signed=signed),
    )


def check_key(
    public_key: str,
    *,
    own: str = "",
    judge: str = "",
    trusted: tuple[str, ...] = (),
    ran: bool = True,
) -> Statement:
    """Return whose key it is.

    Args:
        public_key: The record's.
        own: This machine's; "" when it has none.
        judge: That of the evaluator that judged again, which may be on another machine.
        trusted: Keys or fingerprints that the caller vouches for.
        ran: Whether the candidate was judged again.
    """
    name = fingerprint(public_key)
    if trusted:
        if name and (public_key in trusted or name in trusted):
            return _key(Agreement.AGREES, name, "a key that you named")
        return _key(Agreement.DIFFERS, name, "a foreign key: none of those that you named")
    if public_key and public_key == own:
        return _key(Agreement.AGREES, name, "this machine's")
    if public_key and public_key == judge:
        return _key(Agreement.AGREES, name, "that of the evaluator that judged it again")
    note = f"a foreign key, another machine's: --key {name} says that you know whose it is"
    rest = "the second evaluation decides" if ran else "only a second evaluation could tell"
    # Without a fingerprint there is no key.
    agreement = Agreement.NOT_COMPARABLE if name else Agreement.DIFFERS
    return _key(agreement, name, f"{note}; {rest}")


def _key(agreement: Agreement, name: str, note: str) -> Statement:
    return Statement(subject=KEY, agreement=agreement, recorded=name or "none", note=note)


def _identity(subject: str, found: str, judged: str, note: str = "") -> Statement:
    if found == judged:
        agrees = Agreement.AGREES
        return Statement(subject=subject, agreement=agrees, recorded=judged[:16], note=note)
    return Statement(
        subject=subject,
        agreement=Agreement.DIFFERS,
        recorded=judged[:16],
        found=found[:16],
        note=f"the {subject} in the record is not the one that was judged",
    )


def _samples(record: EvidenceRecord) -> Iterator[Statement]:
    """Say for each timed workload whether its medians are those of its samples."""
    for result in record.evaluation.workloads:
        timings = dict(_timings(result))
        if not timings:
            continue
        wrong = [name for name, timing in timings.items() if not _fits(timing)]
        count = sum(len(timing.samples_ns) for timing in timings.values())
        yield Statement(
            subject=f"samples of {result.workload}",
            agreement=Agreement.DIFFERS if wrong else Agreement.AGREES,
            recorded=f"{count} of {len(timings)} measurements",
            note=f"median and interval do not come from these samples: {', '.join(wrong)}"
            if wrong
            else "",
        )


def _timings(result: WorkloadResult) -> Iterator[tuple[str, Timing]]:
    if result.timing is not None:
        yield "candidate", result.timing
    if result.warm_timing is not None:
        yield "candidate with warm caches", result.warm_timing
    for baseline in result.baselines:
        yield baseline.name, baseline.timing


def _fits(timing: Timing) -> bool:
    if not timing.samples_ns or not all(0 < sample < math.inf for sample in timing.samples_ns):
        return False
    median_ns, interval_ns = median_interval(timing.samples_ns)
    extremes_ns = (min(timing.samples_ns), max(timing.samples_ns))
    # Few samples: earlier evaluators recorded the extremes.
    is_few = len(timing.samples_ns) < FEWEST_RANKED
    is_interval = timing.ci95_ns == interval_ns or (is_few and timing.ci95_ns == extremes_ns)
    return timing.median_ns == median_ns and is_interval


def _digest(digest: str, attestation: Attestation, *, signed: bool) -> Statement:
    if digest == attestation.digest:
        return Statement(subject="digest", agreement=Agreement.AGREES, recorded=digest)
    note = (
        "the content was changed after it was signed"
        if signed
        else "the digest is of other content, and was not signed either"
    )
    return Statement(
        subject="digest",
        agreement=Agreement.DIFFERS,
        recorded=attestation.digest,
        found=digest,
        note=note,
    )


def _signature(attestation: Attestation, *, fits: bool, signed: bool) -> Statement:
    agreement = Agreement.AGREES if signed else Agreement.DIFFERS
    note = ""
    if not fingerprint(attestation.public_key):
        note = "there is no key to check it with"
    elif not signed and fits:
        note = "the digest was computed again without the key: the signature is of another one"
    elif not signed:
        note = "it is not this key's signature of this digest"
    elif not fits:
        note = "true of the digest, which is not that of the content"
    return Statement(subject="signature", agreement=agreement, note=note)
