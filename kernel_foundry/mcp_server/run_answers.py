"""What tools answer of sweeps, runs, records and exported files."""

from collections import Counter
from collections.abc import Iterable, Sequence

from kernel_foundry.domain.archive import ArchiveStats, Elite, Run
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.finding import headline
from kernel_foundry.domain.steering import SteeringEvent
from kernel_foundry.domain.sweep import ConfigurationResult
from kernel_foundry.evidence.record import EvidenceRecord
from kernel_foundry.mcp_server.answers import (
    MOST_ITEMS,
    Answer,
    Verdict,
    interval,
    shown,
    shown_list,
    verdict,
)
from kernel_foundry.printable import printable
from kernel_foundry.sdk.export.export import ExportedWorkload
from kernel_foundry.sdk.run_objects import candidate_text
from kernel_foundry.sdk.steering import steering_object
from kernel_foundry.sdk.verification.statement import CODE_OF_FILE, Agreement
from kernel_foundry.sdk.verification.verify import Verification

LONGEST_CODE = 1 << 15
"""Characters of a candidate in an answer; longer ones are a resource."""


class ConfigurationAnswer(Answer):
    """One configuration that was right and timed."""

    configuration: dict[str, str]
    median_ns: float | None
    speedup: float | None
    speedup_interval: list[float] | None
    raced_out: bool
    """It left the race early, because it cannot be the best."""


class SweepAnswer(Answer):
    """What became of a candidate's configurations."""

    tried: int
    validity: dict[str, int]
    """Count of each validity: correct, compile, runtime, correctness, constraints, timeout."""
    fastest: list[ConfigurationAnswer]
    failures: list[str]
    """Each reason once, the most frequent first."""
    best: Verdict | None
    """Full verdict on the best configuration; null if none is correct."""


class RunStatus(Answer):
    """Where a run stands."""

    run: str
    task: str
    language: str
    device: str
    state: str
    """running, finished or interrupted."""
    evaluations: int
    outcomes: dict[str, int]
    """Number of candidates by outcome."""
    speedup: float | None
    """Speed-up of the best candidate so far, over the fastest baseline."""
    speedup_interval: list[float] | None
    cost_usd: float
    failure: str
    """Why a run of this server ended early; empty if it did not."""


class SteeringAnswer(Answer):
    """What is in force of what was asked of a run."""

    run: str
    state: str
    """running: the action takes effect with the next proposal; else when the run is resumed."""
    paused: bool
    stopped: bool
    hint: str
    pinned: str | None
    banned: list[str]
    """Cells."""
    tricks: list[str]
    """Those that are banned."""


class RunWinner(Answer):
    """A run's best candidate."""

    status: RunStatus
    winner: Verdict | None
    """Null when nothing passed."""
    candidate: str
    """The winner's text, with the measured configuration as its defaults; empty without one."""
    is_exact: bool
    """False if the text was truncated, or has characters that were escaped."""


class StatementAnswer(Answer):
    """One thing that a check of a record looked at."""

    subject: str
    agreement: str
    """agrees, differs, inconclusive or not_comparable."""
    recorded: str
    found: str
    note: str


class RecordCheck(Answer):
    """What a check of one record says."""

    task: str
    candidate: str
    """Digest."""
    agrees: bool
    """False also for an exported file, whose code is not checked, and for an unknown key."""
    numbers_confirmed: bool
    times_confirmed: bool
    signed_by_unknown_key: bool
    """Whether the record is intact, was not judged again, and is signed by an unknown key."""
    statements: list[StatementAnswer]


class ExportedTimes(Answer):
    """An exported file on one workload."""

    name: str
    kernels_ns: float | None
    """Null if the candidate was not judged again."""
    judged_ns: float | None


class ExportAnswer(Answer):
    """A file or folder that was written, after it ran right in a locked process."""

    path: str
    """Relative to the server's root."""
    task: str
    workloads: list[ExportedTimes]
    warnings: list[str]
    """Judged workloads that are left out, and CUDA graphs that are slower than the verdict."""


def sweep_answer(results: Sequence[ConfigurationResult], best: Evaluation | None) -> SweepAnswer:
    """Return a digest of a sweep.

    Args:
        results: Of all configurations.
        best: Verdict on the best one; None when none is right.
    """
    counts = Counter(result.validity.value for result in results)
    correct = sorted((r for r in results if r.is_correct), key=lambda r: r.median_ns or 0.0)
    reasons = Counter(filter(None, (headline(result.findings) for result in results)))
    return SweepAnswer(
        tried=len(results),
        validity=dict(counts.most_common()),
        fastest=[
            ConfigurationAnswer(
                configuration={shown(s.name): shown(s.value) for s in result.configuration},
                median_ns=result.median_ns,
                speedup=result.speedup,
                speedup_interval=interval(result.speedup_interval),
                raced_out=result.raced_out,
            )
            for result in correct[:MOST_ITEMS]
        ],
        failures=shown_list(reason for reason, _count in reasons.most_common()),
        best=None if best is None else verdict(best),
    )


def run_status(run: Run, stats: ArchiveStats, failure: str = "") -> RunStatus:
    """Return where a run stands."""
    return RunStatus(
        run=run.spec.name,
        task=shown(run.spec.task.name),
        language=run.spec.language.value,
        device=shown(run.spec.device),
        state=run.state.value,
        evaluations=run.evaluation_count,
        outcomes={one.outcome.upper(): one.count for one in stats.outcomes},
        speedup=run.best_speedup,
        speedup_interval=interval(run.best_speedup_interval),
        cost_usd=run.cost_usd,
        failure=shown(failure),
    )


def steering_answer(run: Run, events: Iterable[SteeringEvent]) -> SteeringAnswer:
    """Return what is in force of a run's steering."""
    found = steering_object(events)
    return SteeringAnswer(
        run=run.spec.name,
        state=run.state.value,
        paused=found["paused"],
        stopped=found["stopped"],
        hint=shown(found["hint"]),
        pinned=found["pinned"],
        banned=found["banned"],
        tricks=shown_list(found["tricks"]),
    )


def run_winner(status: RunStatus, best: Elite | None) -> RunWinner:
    """Return a run's best candidate with its text."""
    if best is None:
        return RunWinner(status=status, winner=None, candidate="", is_exact=True)
    exact = candidate_text(best)
    text = printable(exact)[:LONGEST_CODE]
    return RunWinner(
        status=status, winner=verdict(best.evaluation), candidate=text, is_exact=text == exact
    )


def record_check(
    record: EvidenceRecord, verified: Verification, *, is_in_program: bool
) -> RecordCheck:
    """Return a digest of what became of a record.

    Args:
        record: The record.
        verified: What was found.
        is_in_program: Whether it is from a Python file, whose code nobody looked at.
    """
    statements = (*verified.statements, CODE_OF_FILE) if is_in_program else verified.statements
    differing_first = sorted(statements, key=lambda s: s.agreement is Agreement.AGREES)
    return RecordCheck(
        task=shown(record.task.name),
        candidate=record.source.digest,
        agrees=verified.agrees and not is_in_program,
        numbers_confirmed=verified.numbers_confirmed,
        times_confirmed=verified.times_confirmed,
        signed_by_unknown_key=verified.is_signed_by_unknown_key,
        statements=[
            StatementAnswer(
                subject=shown(s.subject),
                agreement=s.agreement.value,
                recorded=shown(s.recorded),
                found=shown(s.found),
                note=shown(s.note),
            )
            for s in differing_first[: 4 * MOST_ITEMS]
        ],
    )


def exported_times(workload: ExportedWorkload) -> ExportedTimes:
    """Return the times of an exported file on one workload."""
    kernels, judged = workload.result.kernels_ns, workload.verdict_ns
    return ExportedTimes(
        name=shown(workload.result.name),
        kernels_ns=kernels and kernels[1],
        judged_ns=judged and judged[1],
    )
