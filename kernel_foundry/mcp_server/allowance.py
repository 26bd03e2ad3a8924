"""What callers of a server may spend: evaluations, seconds of work, and money."""

from dataclasses import dataclass, field
from typing import Any

from mcp.server.mcpserver import Context

from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.quantity_text import counted


@dataclass(slots=True, kw_only=True)
class Allowance:
    """Counts what was used of three budgets, and refuses what goes beyond them."""

    evaluations: int
    """Most evaluations, including those of runs and configurations of sweeps."""
    seconds: float
    """Most wall-clock seconds of calls and of runs; a call in progress is not interrupted."""
    usd: float = 0.0
    """Most dollars that runs may spend on models."""
    used_evaluations: int = field(default=0, init=False)
    used_seconds: float = field(default=0.0, init=False)
    used_usd: float = field(default=0.0, init=False)

    @property
    def left(self) -> int:
        """Evaluations that are left."""
        return self.evaluations - self.used_evaluations

    @property
    def seconds_left(self) -> float:
        """Seconds that are left, at least 0."""
        return max(self.seconds - self.used_seconds, 0.0)

    @property
    def usd_left(self) -> float:
        """US dollars that are left, at least 0."""
        return max(self.usd - self.used_usd, 0.0)

    def check_time(self) -> None:
        """Refuse a call when the time is used up.

        Raises:
            InvalidArgumentError: it is.
        """
        if self.used_seconds >= self.seconds:
            raise InvalidArgumentError(
                f"the budget of {self.seconds:g} seconds is used up: the server's user may start "
                "it again with a larger `--seconds`",
                field="seconds",
            )

    def take(self, evaluations: int) -> None:
        """Count evaluations that are about to be made.

        Raises:
            InvalidArgumentError: there are not so many left.
        """
        if evaluations > self.left:
            raise InvalidArgumentError(
                f"{counted(evaluations, 'evaluation')} asked for, {self.left} of "
                f"{self.evaluations} left: ask for fewer, or the server's user may start it again "
                "with more `--evaluations`",
                field="evaluations",
            )
        self.used_evaluations += evaluations

    def give_back(self, evaluations: int) -> None:
        """Count evaluations that were taken and not made; fewer than none are none."""
        self.used_evaluations -= max(evaluations, 0)


class Allowances:
    """What each caller may spend, the same for all.

    Over HTTP a caller is whoever shows one of the server's tokens (`http.TokenGate`), however often
    it connects: a session can be begun at will, and newer clients have none. On standard input
    there is one caller.

    Args:
        evaluations, seconds, usd: As of `Allowance`.
    """

    def __init__(self, *, evaluations: int, seconds: float, usd: float = 0.0) -> None:
        self._evaluations = evaluations
        self._seconds = seconds
        self._usd = usd
        self._of: dict[str, Allowance] = {}

    def of(self, context: Context[Any, Any]) -> Allowance:
        """Return what the caller of a tool, resource or prompt may spend."""
        caller = (context.headers or {}).get("authorization", "")
        if caller not in self._of:
            self._of[caller] = Allowance(
                evaluations=self._evaluations, seconds=self._seconds, usd=self._usd
            )
        return self._of[caller]
