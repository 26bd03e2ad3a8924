"""A number with the interval that holds it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A number over seeds or tasks and the interval that holds it with 95 % confidence."""

    value: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether zero is outside of the interval."""
        return self.low > 0 or self.high < 0
