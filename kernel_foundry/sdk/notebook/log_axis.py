"""A logarithmic axis of a plot."""

import math
from dataclasses import dataclass
from typing import Final

_STEPS: Final = (1.0, 2.0, 5.0)


@dataclass(frozen=True, slots=True)
class LogAxis:
    """Places positive values between two pixels, the same ratio always the same distance.

    Args:
        least: Least value, above 0.
        greatest: Greatest value, above `least`.
        start: Pixel of the least value.
        end: Pixel of the greatest value.
    """

    least: float
    greatest: float
    start: float
    end: float

    def place(self, value: float) -> float:
        """Return the pixel of a value, of one beyond the ends that of the end."""
        held = min(max(value, self.least), self.greatest)
        share = math.log(held / self.least) / math.log(self.greatest / self.least)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Return round values on the axis: 1, 2 or 5 times a power of ten, or its ends."""
        first, last = math.floor(math.log10(self.least)), math.ceil(math.log10(self.greatest))
        steps = _STEPS if last - first < 4 else _STEPS[:1]
        values = [step * 10.0**power for power in range(first, last + 1) for step in steps]
        inside = [value for value in values if self.least <= value <= self.greatest]
        return inside if len(inside) > 1 else [self.least, self.greatest]
