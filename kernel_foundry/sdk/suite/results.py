"""What each run of a suite came to, as the archive has it."""

from dataclasses import dataclass
from typing import Final

from kernel_foundry.domain.archive import Elite
from kernel_foundry.domain.check import Trust
from kernel_foundry.domain.evaluation import (
    Evaluation,
    EvaluationOutcome,
    WorkloadResult,
    speedup_interval_of,
    speedup_of,
)
from kernel_foundry.domain.speedup import fastest
from kernel_foundry.errors import RunNotFoundError
from kernel_foundry.ports import Archive
from kernel_foundry.sdk.loop.promotion import winner
from kernel_foundry.sdk.suite.entry import EntryState, SuiteEntry
from kernel_foundry.sdk.suite.numbers.sol_score import sol_score
from kernel_foundry.sdk.suite.numbers.speedup_change import MeasuredSpeedup
from kernel_foundry.sdk.suite.suite import Suite

FASTEST = "fastest"
"""Stands for the fastest baseline of each workload."""


_BEHIND_A_BUILD: Final = (
    EvaluationOutcome.PASSED,
    EvaluationOutcome.LAUNCH_ERROR,
    EvaluationOutcome.CRASHED,
    EvaluationOutcome.WRONG_RESULT,
    EvaluationOutcome.NONDETERMINISTIC,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryResult:
    """One run of a suite and its winner."""

    entry: SuiteEntry
    winner: Elite | None = None
    """Of a run that goes on, the best so far; None where nothing passed."""
    published: Evaluation | None = None
    """The verdict on a foreign kernel that passed, where it was judged in place of a run."""
    has_compiled: bool = False
    """Whether some kernel is known to have been compiled; what was rejected or timed out does not
    tell."""

    @property
    def verdict(self) -> Evaluation | None:
        """The winner's verdict."""
        if self.published is not None:
            return self.published
        return None if self.winner is None else self.winner.evaluation

    @property
    def is_degenerate(self) -> bool:
        """Whether a trivial answer passes the task."""
        found = self.verdict
        marked = found is not None and found.trust is Trust.DEGENERATE
        return marked or bool(self.entry.progress.degeneracies)

    @property
    def baselines(self) -> tuple[str, ...]:
        """Names of the baselines that were timed on every timed workload."""
        if self.verdict is None:
            return ()
        timed = [w for w in self.verdict.workloads if not w.held_out]
        names = [b.name for b in timed[0].baselines]
        return tuple(n for n in names if all(n in (b.name for b in w.baselines) for w in timed))

    def speedup(self, baseline: str) -> MeasuredSpeedup | None:
        """Return the winner's speed-up over a baseline, or `FASTEST`; None without either."""
        if self.verdict is None:
            return None
        name = "" if baseline == FASTEST else baseline
        value = speedup_of(self.verdict.workloads, name)
        interval = speedup_interval_of(self.verdict.workloads, name)
        if value is None or interval is None:
            return None
        return MeasuredSpeedup(value=value, low=interval[0], high=interval[1])

    def speedups(self, baseline: str) -> tuple[float | None, ...]:
        """Return the speed-up over a baseline, or `FASTEST`, on each timed workload of the task.

        None where there is no winner or no such baseline.
        """
        name = "" if baseline == FASTEST else baseline
        judged = () if self.verdict is None else self.verdict.workloads
        found = {w.workload: speedup_of((w,), name) for w in judged}
        return tuple(found.get(w.name) for w in self.entry.task.workloads if not w.held_out)

    @property
    def sol_score(self) -> float | None:
        """Weighted mean of the SOL scores on its timed workloads, from 0 to 1; 0 without a winner.

        None where no workload has one: its bounds are not known, or its fastest baseline is there.
        """
        if self.verdict is None:
            return 0.0
        scored = [(w.weight, _sol_score(w)) for w in self.verdict.workloads]
        found = [(weight, score) for weight, score in scored if score is not None]
        if not found:
            return None
        return sum(weight * score for weight, score in found) / sum(weight for weight, _ in found)

    @property
    def effective_bits(self) -> float | None:
        """Of the winner's least exact workload; None where none was audited."""
        audit = None if self.verdict is None else self.verdict.precision
        return None if audit is None else audit.effective_bits

    @property
    def own_share(self) -> float | None:
        """Least share of device time in the winner's own kernels; None without a winner.

        What a foreign kernel calls is not seen.
        """
        if self.verdict is None or self.published is not None:
            return None
        timed = [w for w in self.verdict.workloads if w.timing]
        return min(1.0 if w.own_share is None else w.own_share for w in timed)


def _sol_score(result: WorkloadResult) -> float | None:
    """SOL score on one workload, over its fastest baseline."""
    known = (result.traffic_bound_ns, result.arithmetic_estimate_ns)
    bounds_ns = [bound for bound in known if bound is not None]
    call, baselines = result.call_bounds_ns, [b.timing.bounds_ns for b in result.baselines]
    if call is None or not baselines or not bounds_ns:
        return None
    return sol_score(call[1], fastest(baselines)[1], max(bounds_ns))


async def results_of(archive: Archive, suite: Suite) -> tuple[EntryResult, ...]:
    """Return the result of every run of a suite, in order; runs that were deleted have none."""
    return tuple([await _result(archive, entry) for entry in suite.entries])


async def _result(archive: Archive, entry: SuiteEntry) -> EntryResult:
    if entry.state not in (EntryState.FINISHED, EntryState.BEGUN):
        return EntryResult(entry=entry)
    try:
        best = await winner(archive, entry.run)
        outcomes = () if best else (await archive.stats(entry.run)).outcomes
    except RunNotFoundError:
        return EntryResult(entry=entry)
    has_compiled = best is not None or any(one.outcome in _BEHIND_A_BUILD for one in outcomes)
    return EntryResult(entry=entry, winner=best, has_compiled=has_compiled)


def judged_result(entry: SuiteEntry, verdict: Evaluation | None) -> EntryResult:
    """Return the result of a task whose kernel was judged, where there was one."""
    return EntryResult(
        entry=entry,
        published=verdict if verdict is not None and verdict.passed else None,
        has_compiled=verdict is not None and verdict.outcome in _BEHIND_A_BUILD,
    )
