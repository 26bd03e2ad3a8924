"""Budgets of a run: evaluations, minutes, money, and the traffic bound."""

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from kernel_foundry.domain.archive import RunBudget
from kernel_foundry.domain.traffic_bound import AT_TRAFFIC_BOUND
from kernel_foundry.errors import InvalidArgumentError

DEFAULT_EVALUATIONS: Final = 40
"""Evaluations of a run that is given neither a length nor a cap on money."""

LEAST_EVALUATIONS: Final = 8
"""Fewest evaluations before the traffic bound may end a run, so that a lucky time does not."""


EVALUATIONS_PER_IN_FLIGHT: Final = 5
"""Evaluations of a run's budget for each proposal in flight: proposals that are made at once learn
nothing from each other's verdicts."""

LEAST_IN_FLIGHT: Final = 2
"""Proposals at once that every run may have."""


PROFILE_SHARE: Final = 0.2
"""Most of a call's wall time that profiles may take, beyond `PROFILE_CREDIT_SECONDS`."""
ENOUGH_SECONDS: Final = 20.0
"""Most seconds of one profile while another may need as many: 18 profiles took 4.3 to 7.6 s on an
H200, and importing torch takes another 7 s."""
PROFILE_CREDIT_SECONDS: Final = 2 * ENOUGH_SECONDS
"""Seconds for profiles that a run has from the beginning, at most `PROFILE_SHARE` of its minutes:
the first kernels that pass are the parents of the next ones."""


class StopCause(StrEnum):
    """Why a run ended."""

    EVALUATIONS = "evaluations"
    MINUTES = "minutes"
    COST = "cost"
    TRAFFIC_BOUND = "traffic_bound"
    """The best kernel is at the traffic bound of every timed workload."""
    EXHAUSTED = "exhausted"
    STOPPED = "stopped"
    """Its user stopped it, see `domain.steering`."""
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The limits of a run; None: unlimited."""

    evaluations: int | None = None
    """Evaluations of the whole run, also those before a resume; see `BudgetUse.evaluations`."""
    minutes: float | None = None
    """Minutes of this call, from its start, without pauses; measuring the winner again is
    included."""
    cost_usd: float | None = None
    """US dollars of the whole run."""
    tokens: int | None = None
    """Tokens of the whole run, in and out."""
    requests_per_minute: int | None = None
    """Requests to models in any 60 seconds; further ones wait."""
    stop_at: float | None = None
    """Share of the traffic bound at which the run ends, above 0, or `domain.traffic_bound.NEVER`;
    None: what the run was started with, else `AT_TRAFFIC_BOUND`."""

    def __post_init__(self) -> None:
        """Refuse values that make no budget.

        Raises:
            InvalidArgumentError: a value is not a number, or too small.
        """
        _check_count(self.evaluations, "evaluations", least=1)
        _check_count(self.tokens, "tokens", least=0)
        _check_count(self.requests_per_minute, "requests_per_minute", least=0)
        for name in ("minutes", "cost_usd", "stop_at"):
            value = getattr(self, name)
            if value is not None and not (_is_number(value) and value >= 0):
                raise InvalidArgumentError(
                    f"Budget({name}={value!r}): expected a number of at least 0, or None for no"
                    " limit",
                    field=name,
                )

    def in_flight(self, asked: int) -> int:
        """Return how many proposals to make at once if `asked` are asked for."""
        if self.evaluations is None:
            return asked
        return min(asked, max(LEAST_IN_FLIGHT, self.evaluations // EVALUATIONS_PER_IN_FLIGHT))

    def left_after(self, seconds: float) -> RunBudget:
        """Return the rest of the budget for a loop that resumes after so many seconds."""
        return RunBudget(
            evaluations=self.evaluations,
            minutes=None if self.minutes is None else max(self.minutes - seconds / 60, 0.0),
            cost_usd=self.cost_usd,
            tokens=self.tokens,
            requests_per_minute=self.requests_per_minute,
        )

    def over(self, kept: RunBudget) -> "Budget":
        """Return this budget, with the run's kept limits in place of those that it leaves open.

        Evaluations and minutes both limit the length: one that is given replaces both.
        """
        has_length = self.evaluations is not None or self.minutes is not None
        return replace(
            self,
            evaluations=self.evaluations if has_length else kept.evaluations,
            minutes=self.minutes if has_length else kept.minutes,
            cost_usd=kept.cost_usd if self.cost_usd is None else self.cost_usd,
            tokens=kept.tokens if self.tokens is None else self.tokens,
            requests_per_minute=self.requests_per_minute or kept.requests_per_minute,
        )


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return not math.isnan(value)


def _check_count(value: object, name: str, *, least: int) -> None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and value >= least
    if value is not None and not is_count:
        raise InvalidArgumentError(
            f"Budget({name}={value!r}): expected a whole number of at least {least}, or None for no"
            " limit",
            field=name,
        )


@dataclass(slots=True, kw_only=True)
class BudgetUse:
    """The use of a run's budget so far."""

    archived: int = 0
    """Evaluations in the archive, those of elites measured again at the end as well."""
    evaluations: int = 0
    """Evaluations that count against the budget: candidates, best configurations of sweeps, and the
    sweeps themselves."""
    sweep_evaluations: int = 0
    """Those of them that the sweeps themselves count for."""
    seconds: float = 0.0
    cost_usd: float = 0.0
    tokens: int = 0
    sweeps: int = 0
    """Sweeps made."""
    profile_seconds: float = 0.0
    """Those of these seconds that profiles took."""
    promotions: int = 0
    """Measurements of leading candidates at the end of the run."""
    traffic_bound_share: float = 0.0
    """Share of the traffic bound that the best candidate reaches, on the workload with the
    least."""


def stop_cause(
    budget: Budget, spent: BudgetUse, *, reserve_seconds: float = 0.0
) -> StopCause | None:
    """Return why `spent` ends a run under `budget`, or None.

    Args:
        budget: The caps.
        spent: The use so far.
        reserve_seconds: Seconds that have to be left for measuring the winner again.
    """
    if budget.evaluations is not None and spent.evaluations >= budget.evaluations:
        return StopCause.EVALUATIONS
    if budget.minutes is not None and spent.seconds + reserve_seconds >= budget.minutes * 60:
        return StopCause.MINUTES
    if budget.cost_usd is not None and spent.cost_usd >= budget.cost_usd > 0:
        return StopCause.COST
    if budget.tokens is not None and spent.tokens >= budget.tokens:
        return StopCause.COST
    stop_at = AT_TRAFFIC_BOUND if budget.stop_at is None else budget.stop_at
    if spent.traffic_bound_share >= stop_at and spent.evaluations >= LEAST_EVALUATIONS:
        return StopCause.TRAFFIC_BOUND
    return None
