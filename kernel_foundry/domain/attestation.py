"""What makes a verdict evidence: the seeds that were secret, a digest, a signature."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadSeeds:
    """The seeds that a workload's inputs and parameters were drawn from."""

    workload: str
    seeds: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attestation:
    """An evaluator's word for an evaluation.

    `kernel_foundry.evidence` says what is digested and how it is checked.
    """

    seeds: tuple[WorkloadSeeds, ...]
    """Not told before the evaluation is over."""
    seeds_given: bool
    """The caller chose them, as when a record is run again: a candidate might have known them."""
    signed_unix_s: float
    digest: str
    """SHA-256 of the record's canonical JSON without digest and signature, in hexadecimal."""
    public_key: str
    """Ed25519 key of the evaluator that signed, in hexadecimal."""
    signature: str
    """Of the digest, in hexadecimal."""
