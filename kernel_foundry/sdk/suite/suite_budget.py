"""What is left of a suite's budget, and what its runs get of it (`budget_shares.py`)."""

import math
from dataclasses import replace

from kernel_foundry.domain.archive import RunBudget
from kernel_foundry.sdk.loop.budget import StopCause
from kernel_foundry.sdk.suite.budget_shares import (
    is_worth_going_on,
    left_of,
    minutes_share,
    more,
    possible_gain,
    share,
    whole_share,
)
from kernel_foundry.sdk.suite.entry import EntryState, SuiteEntry
from kernel_foundry.sdk.suite.suite import Suite


class SuiteBudget:
    """The budget of one suite.

    Args:
        suite: The suite; its entries say what was used and promised.
        workers: Runs at once.
    """

    def __init__(self, suite: Suite, workers: int) -> None:
        self._suite = suite
        self._each = suite.plan.each
        self._workers = workers

    def for_waiting(self, waiting: int, used_seconds: float) -> RunBudget | None:
        """Return what the next of so many waiting runs gets; None: the budget is used up.

        Args:
            waiting: Runs that have not begun.
            used_seconds: Wall-clock time of the suite up to now.
        """
        usd, tokens, minutes = self._left(used_seconds)
        each = self._each
        given = RunBudget(
            evaluations=each.evaluations,
            minutes=minutes_share(minutes, each.minutes, waiting=waiting, workers=self._workers),
            cost_usd=share(usd, each.cost_usd, waiting),
            tokens=whole_share(tokens, each.tokens, waiting),
            requests_per_minute=each.requests_per_minute,
        )
        is_used_up = 0 in (given.minutes, given.cost_usd, given.tokens)
        return None if is_used_up else given

    def with_more(self, device: str, used_seconds: float) -> tuple[SuiteEntry, RunBudget] | None:
        """Return a run of a device that its share has ended, and more for it; None: there is none.

        The one that may gain most comes first. It gets its part of what is left, beside all others
        that may get more, now or when they end.
        """
        left = self._left(used_seconds)
        others = [entry for entry in self._suite.entries if _may_go_on(entry)]
        whole_gain = math.fsum(possible_gain(entry.progress.bound_share) for entry in others)
        for entry in sorted(others, key=lambda entry: entry.progress.bound_share):
            if entry.has_ended and entry.progress.device == device:
                part = possible_gain(entry.progress.bound_share) / whole_gain
                given = self._more(entry, left, part)
                if given is not None:
                    return entry, given
        return None

    def _left(self, used_seconds: float) -> tuple[float | None, float | None, float | None]:
        """What is left: USD, tokens and minutes; None: unlimited."""
        whole = self._suite.plan.whole
        ended = [e.progress for e in self._suite.entries if e.has_ended]
        begun = [e.progress.budget for e in self._suite.entries if e.state is EntryState.BEGUN]
        return (
            left_of(
                whole.cost_usd,
                sum(p.cost_usd for p in ended),
                sum(b.cost_usd or 0.0 for b in begun),
            ),
            left_of(whole.tokens, sum(p.tokens for p in ended), sum(b.tokens or 0 for b in begun)),
            left_of(None if whole.hours is None else 60 * whole.hours, used_seconds / 60, 0),
        )

    def _more(
        self, entry: SuiteEntry, left: tuple[float | None, float | None, float | None], part: float
    ) -> RunBudget | None:
        """More for a run, of which its part is `part` of what is left; None: too little."""
        each, progress, first = self._each, entry.progress, entry.progress.budget
        usd = more(left[0], each.cost_usd, first=first.cost_usd, used=progress.cost_usd, part=part)
        tokens = more(left[1], each.tokens, first=first.tokens, used=progress.tokens, part=part)
        minutes = self._more_minutes(first.minutes, left[2], part)
        if not (
            is_worth_going_on(usd, first=first.cost_usd, used=progress.cost_usd)
            and is_worth_going_on(tokens, first=first.tokens, used=progress.tokens)
            and is_worth_going_on(minutes, first=first.minutes, used=0.0)
        ):
            return None
        whole_tokens = None if tokens is None else math.floor(tokens)
        return replace(first, cost_usd=usd, tokens=whole_tokens, minutes=minutes)

    def _more_minutes(self, first: float | None, left: float | None, part: float) -> float | None:
        """Minutes from when it goes on: as many runs share them as work at once."""
        if first is None:
            return None
        own = math.inf if self._each.minutes is None else self._each.minutes - first
        shared = math.inf if left is None else min(left, self._workers * part * left)
        return max(min(own, shared), 0.0)


def _may_go_on(entry: SuiteEntry) -> bool:
    """Whether a run has not been given more, and can use more once its share has ended it."""
    progress = entry.progress
    if entry.state is EntryState.FINISHED:
        by_share = progress.ended_by in (StopCause.COST, StopCause.MINUTES)
        return progress.rounds == 1 and by_share and progress.bound_share < 1.0
    return entry.state is EntryState.BEGUN and progress.rounds == 1
