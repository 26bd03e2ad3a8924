"""The verification of a record: its parts, its signature, and a second evaluation."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from kernel_foundry.domain.attestation import Attestation
from kernel_foundry.domain.check import CheckKind, Trust
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.request import EvaluationLimits, EvaluationRequest
from kernel_foundry.evidence.record import EvidenceRecord
from kernel_foundry.ports import Evaluator
from kernel_foundry.sdk.verdict_text import duration
from kernel_foundry.sdk.verification.compare import compare, is_about_times
from kernel_foundry.sdk.verification.second_verdict import check_second_verdict, verified_key
from kernel_foundry.sdk.verification.signature import KEY, check_integrity, check_key
from kernel_foundry.sdk.verification.statement import Agreement, Statement, holds
from kernel_foundry.sdk.verification.task_settings import unusual_settings

_LIMITS: Final = EvaluationLimits(build_seconds=60.0, run_seconds=60.0)
"""What passed once is given time to pass on a slower host."""

MOST_EVALUATIONS: Final = 3

_SEEDS: Final = "seeds"
_UNSETTLED: Final = (Agreement.DIFFERS, Agreement.INCONCLUSIVE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The result of verifying a record."""

    statements: tuple[Statement, ...]
    again: Evaluation | None
    """The second evaluation; None when there was none."""

    @property
    def numbers_confirmed(self) -> bool:
        """True when the candidate was judged again and is as right as the record says."""
        rest = tuple(s for s in self.statements if not is_about_times(s))
        return self.again is not None and holds(rest)

    @property
    def times_confirmed(self) -> bool:
        """True when each time that the record claims was measured again, on its own device."""
        times = [s for s in self.statements if is_about_times(s)]
        return bool(times) and all(s.agreement is Agreement.AGREES for s in times)

    @property
    def is_partial(self) -> bool:
        """True when nothing differs, and the record's times were not confirmed.

        Times of another device are its maker's word, and a busy host's intervals may be too wide:
        that the numbers come again says nothing about them.
        """
        is_judged = self.again is not None
        return is_judged and holds(self.statements) and not self.times_confirmed

    @property
    def is_inconclusive(self) -> bool:
        """True when a time was measured on the record's device, in too wide an interval."""
        return any(s.agreement is Agreement.INCONCLUSIVE for s in self.statements)

    @property
    def agrees(self) -> bool:
        """True when nothing differs, and either the times are confirmed or a known key signed."""
        return holds(self.statements) and not self.is_partial and not self.is_signed_by_unknown_key

    @property
    def is_signed_by_unknown_key(self) -> bool:
        """True when the record is intact, was not judged again, and nobody vouches for its key.

        Whoever made it could have signed anything.
        """
        is_known = any(
            s.subject == KEY and s.agreement is Agreement.AGREES for s in self.statements
        )
        return self.again is None and holds(self.statements) and not is_known


def is_intact(record: EvidenceRecord) -> bool:
    """Return whether the record is what was signed; if not, its candidate is not run."""
    return holds(check_integrity(record))


def request_again(record: EvidenceRecord, device: str = "") -> EvaluationRequest:
    """Return the request that judges the same candidate on the same seeds.

    Args:
        record: What was judged.
        device: As of `EvaluationRequest`; "" takes any of the kind it was judged on.
    """
    return EvaluationRequest(
        task=record.task,
        device=device or record.evaluation.device.partition(":")[0],
        source=record.source,
        configuration=record.evaluation.configuration,
        limits=_LIMITS,
        # Only with baselines of the same minute do speed-ups compare.
        fresh_baselines=True,
        seeds=record.attestation.seeds,
        sanitize=any(c.kind is CheckKind.SANITIZER for c in record.evaluation.checks),
    )


async def verify_by_judging(
    record: EvidenceRecord,
    evaluator: Evaluator,
    device: str = "",
    *,
    own_key: str = "",
    trusted: tuple[str, ...] = (),
) -> Verification:
    """Return the verification of a record whose candidate `evaluator` judges again.

    Where its seeds are no secret of an evaluator that is known here, it is judged once more on
    fresh ones: a candidate may have been written for those of the record.

    Where nothing but times differs or is inconclusive it is judged up to `MOST_EVALUATIONS` times:
    a host that was busy for a moment says nothing against a record. The other arguments are as of
    `request_again` and `verification`. Raises as `ports.Evaluator.evaluate`.
    """
    request = request_again(record, device)
    for _ in range(MOST_EVALUATIONS):
        again = await evaluator.evaluate(request)
        verified = verification(record, again, own_key=own_key, trusted=trusted)
        unsettled = [s for s in verified.statements if s.agreement in _UNSETTLED]
        if not unsettled or not all(is_about_times(s) for s in unsettled):
            break
    if _SEEDS in (s.subject for s in verified.statements) and holds(verified.statements):
        fresh = await evaluator.evaluate(replace(request, seeds=(), fresh_baselines=False))
        statements = (*verified.statements, _on_fresh_seeds(record, fresh))
        verified = replace(verified, statements=statements)
    return verified


def verification(
    record: EvidenceRecord,
    again: Evaluation | None,
    *,
    own_key: str = "",
    trusted: tuple[str, ...] = (),
) -> Verification:
    """Return the verification of a record.

    Args:
        record: The record.
        again: What `request_again` led to; None when nothing was run.
        own_key: This machine's public key; "" when it has none.
        trusted: Public keys or fingerprints that the caller vouches for.
    """
    whole = check_integrity(record)
    key = check_key(
        record.attestation.public_key,
        own=own_key,
        judge=verified_key(record, again) if again else "",
        trusted=trusted,
        ran=again is not None,
    )
    rest = (
        (_not_run(is_intact=holds(whole)),)
        if again is None
        else (*check_second_verdict(record, again), *compare(record, again))
    )
    chosen = (
        *unusual_settings(record.task),
        *_seeds(record.attestation, is_known=key.agreement is Agreement.AGREES),
        *_yardsticks(record.evaluation),
    )
    statements = (*whole, key, *chosen, *rest)
    return Verification(statements=statements, again=again)


def _seeds(attestation: Attestation, *, is_known: bool) -> Iterator[Statement]:
    """Say when the inputs were no secret: a candidate may have been written for them.

    Args:
        attestation: Of the record.
        is_known: Whether its key is one that the caller, or the evaluator at hand, vouches for.
    """
    if attestation.seeds_given:
        note = "whoever asked for the verdict chose them; fresh and secret ones say more"
    elif not is_known:
        note = "the record's maker says that they were drawn; fresh ones say more"
    else:
        return
    yield Statement(subject=_SEEDS, agreement=Agreement.NOT_COMPARABLE, note=note)


def _on_fresh_seeds(record: EvidenceRecord, fresh: Evaluation) -> Statement:
    """Say whether a third verdict, on seeds that nobody chose, bears the record out."""
    is_on_record = (fresh.candidate, fresh.task) == (record.source.digest, record.task.digest)
    passed = is_on_record and fresh.passed and not _is_newly_suspect(record, fresh)
    return Statement(
        subject="fresh seeds",
        agreement=Agreement.AGREES if passed else Agreement.DIFFERS,
        recorded=record.evaluation.outcome.name,
        found=fresh.outcome.name,
        note="" if passed else "it is right on the record's seeds, and not on others",
    )


def _is_newly_suspect(record: EvidenceRecord, fresh: Evaluation) -> bool:
    return fresh.trust is Trust.SUSPECT and record.evaluation.trust is not Trust.SUSPECT


def _yardsticks(evaluation: Evaluation) -> Iterator[Statement]:
    """Say where fitness rests on a yardstick that the evaluator did not measure."""
    given = [
        (w.workload, w.yardstick_ns)
        for w in evaluation.workloads
        if w.yardstick_given and w.yardstick_ns is not None
    ]
    if given:
        figures = ", ".join(f"{workload} {duration(ns)}" for workload, ns in given)
        note = (
            "the baseline time that fitness compares with was given by whoever asked for the "
            "verdict, not measured; speed-ups were measured"
        )
        yield Statement(
            subject="yardstick", agreement=Agreement.NOT_COMPARABLE, recorded=figures, note=note
        )


def _not_run(*, is_intact: bool) -> Statement:
    note = "not asked for" if is_intact else "the record is not what was signed for"
    return Statement(
        subject="second evaluation", agreement=Agreement.NOT_COMPARABLE, note=f"none: {note}"
    )
