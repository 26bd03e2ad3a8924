"""The use of a run's budget so far, and whether it ends the search.

The budget itself and the reasons to stop are in `budget.py`.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from kernel_foundry.domain.archive import Elite, Run, RunBudget
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.sdk.loop.budget import (
    ENOUGH_SECONDS,
    PROFILE_CREDIT_SECONDS,
    PROFILE_SHARE,
    Budget,
    BudgetUse,
    StopCause,
    stop_cause,
)


class BudgetMeter:
    """The use of one run's budget; its clock starts when it is made.

    Args:
        budget: When to stop.
        run: As the archive describes it when the loop begins.
    """

    def __init__(self, budget: Budget, run: Run) -> None:
        kept = run.spec.stop_at if budget.stop_at is None else budget.stop_at
        self.budget = replace(budget, stop_at=kept)
        self.used = BudgetUse(archived=run.evaluation_count, cost_usd=run.cost_usd)
        self.in_judgement = 0
        """Evaluations in progress, those of sweeps as well."""
        self._in_making = 0
        self._freed = asyncio.Event()
        self._started_s = time.monotonic()
        self._paused_since_s: float | None = None
        self._slowest_evaluation_s = 0.0
        minutes = self.budget.minutes
        self._credit_s = (
            PROFILE_CREDIT_SECONDS
            if minutes is None
            else min(PROFILE_CREDIT_SECONDS, PROFILE_SHARE * 60 * minutes)
        )
        self._promised_s = 0.0
        """To profiles that may be under way."""
        self._cause: StopCause | None = None

    @property
    def promised(self) -> int:
        """Evaluations in progress, and those that proposals being made or waiting will take."""
        return self.in_judgement + self._in_making

    @property
    def is_fully_reserved(self) -> bool:
        """Whether the evaluations in progress use the budget up."""
        if self.stop_cause() is not None:
            return True
        most = self.budget.evaluations
        return most is not None and self.used.evaluations + self.in_judgement >= most

    async def hold_for_proposal(self) -> None:
        """Hold one evaluation for a proposal; waits while all that are left are held.

        Returns at once where the search ends.
        """
        most = self.budget.evaluations
        while self.stop_cause() is None and most is not None:
            if self.used.evaluations + self.promised < most:
                break
            await self._freed.wait()
        self._in_making += 1

    def give_back_proposal(self) -> None:
        """End what `hold_for_proposal` began: the proposal is judged now, or came to nothing."""
        self._in_making -= 1
        self._wake()

    @property
    def is_late(self) -> bool:
        """Whether the minutes are used up, those for measuring the winner again included."""
        most = self.budget.minutes
        return most is not None and self._elapsed_s() > 60 * most

    def stop_cause(self) -> StopCause | None:
        """Return why the search ends, or None; once there is a reason it stays."""
        if self._cause is None:
            self.read_clock()
            self._cause = stop_cause(self.budget, self.used, reserve_seconds=self._promotion_s())
        return self._cause

    def stop(self, cause: StopCause | None) -> None:
        """End the search for this reason, unless there is one already."""
        self._cause = self._cause or cause

    def pause(self) -> None:
        """Stop the clock, unless it stands."""
        if self._paused_since_s is None:
            self._paused_since_s = time.monotonic()

    def go_on(self) -> None:
        """Let the clock run on, unless it runs."""
        if self._paused_since_s is not None:
            self._started_s += time.monotonic() - self._paused_since_s
            self._paused_since_s = None

    def left_s(self) -> float | None:
        """Return how long the search may yet take; None: as long as it likes."""
        if self.budget.minutes is None:
            return None
        return max(0.0, self.budget.minutes * 60 - self._promotion_s() - self._elapsed_s())

    def left(self) -> RunBudget:
        """Return what is left of the budget; pauses take none of its minutes."""
        return self.budget.left_after(self._elapsed_s())

    def read_clock(self) -> None:
        """Bring the seconds used up to date."""
        self.used.seconds = self._elapsed_s()

    def charge_sweep(self, cost: int) -> None:
        """Count a sweep as `cost` evaluations."""
        self.used.evaluations += cost
        self.used.sweep_evaluations += cost
        self.used.sweeps += 1

    def keep_best(self, best: Elite) -> None:
        """Note how near to the traffic bound the best candidate is."""
        timed = [w for w in best.evaluation.workloads if w.timing]
        shares = [w.traffic_bound_share or 0.0 for w in timed]
        self.used.traffic_bound_share = min(shares, default=0.0)

    @contextmanager
    def judging(self, evaluations: int) -> Iterator[None]:
        """Hold part of the budget for what is in progress meanwhile."""
        self.in_judgement += evaluations
        try:
            yield
        finally:
            self.in_judgement -= evaluations
            self._wake()

    @contextmanager
    def evaluation_time(self) -> Iterator[None]:
        """Take the time of one evaluation, for what the end of the run will take."""
        started_s = time.monotonic()
        yield
        self._slowest_evaluation_s = max(self._slowest_evaluation_s, time.monotonic() - started_s)

    @contextmanager
    def profiling(self) -> Iterator[float]:
        """Yield how many seconds a profile may take meanwhile, and promise these to nobody else.

        All profiles together take at most the credit and `PROFILE_SHARE` of the time that will
        have passed. Of what is free one takes half at most, where that is enough for it: else a
        candidate that is judged at the same time has none, whether this one needs it or not.
        """
        used_s = self.used.profile_seconds + self._promised_s
        share_s = PROFILE_SHARE * (self._elapsed_s() + self._promised_s) - used_s
        free_s = max(0.0, self._credit_s + share_s / (1 - PROFILE_SHARE))
        allowed_s = min(free_s, max(ENOUGH_SECONDS, free_s / 2))
        self._promised_s += allowed_s
        try:
            yield allowed_s
        finally:
            self._promised_s -= allowed_s

    def charge_profile(self, evaluation: Evaluation) -> None:
        """Count the time of a verdict's profile."""
        wall_ms = sum(s.wall_ms for s in evaluation.stages if s.stage == "profile")
        self.used.profile_seconds += wall_ms / 1e3

    def _wake(self) -> None:
        """Let all that wait look again."""
        self._freed.set()
        self._freed.clear()

    def _promotion_s(self) -> float:
        """What the end takes: two measurements of about twice an evaluation each."""
        return 4 * self._slowest_evaluation_s

    def _elapsed_s(self) -> float:
        now_s = time.monotonic() if self._paused_since_s is None else self._paused_since_s
        return now_s - self._started_s
