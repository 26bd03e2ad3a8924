"""Numbers among forward's arguments, and how a generated workload gives them other values.

A workload can only hold whole numbers: `forward.steps=4` gives the argument `steps` the value 4,
`forward.share/8=5` gives `share` 5/8.
"""

from collections.abc import Sequence
from typing import Any, Final

from kernel_foundry.domain.task import Size

PREFIX: Final = "forward."
_EIGHTHS: Final = "/8"
_BEYOND_ONE: Final = 12
"""Eighths."""
_TIMES: Final = 2
_MORE: Final = 2
"""Factor of a whole number, and the number that is added to it."""
_WIDER: Final = 4
"""Factor of a float that is not below one."""
_MOST: Final = 2.0**20
"""What is larger stands for no end."""


def other_values(name: str, value: object) -> tuple[Size, ...]:
    """Return other values of an argument, the best first; empty if it is no number."""
    key = f"{PREFIX}{name}"
    if isinstance(value, bool):
        return (Size(name=key, value=int(not value)),)
    if isinstance(value, int):
        return tuple(Size(name=key, value=value + step) for step in (1, -1))
    if isinstance(value, float):
        # These values are probabilities, too.
        return tuple(Size(name=key + _EIGHTHS, value=n) for n in (5, 3) if value != n / 8)
    return ()


def value_beyond(name: str, value: object) -> tuple[Size, ...]:
    """Return a value above one of a float argument below it, a much larger one of other numbers.

    A slope, a decay or a temperature may be on either side, a power, a width or a number of steps
    larger; a probability or an axis may not, and the reference then refuses it. Empty for others.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return (Size(name=f"{PREFIX}{name}", value=_TIMES * value + _MORE),)
    if isinstance(value, float) and 0.0 < value < 1.0:
        return (Size(name=f"{PREFIX}{name}{_EIGHTHS}", value=_BEYOND_ONE),)
    if isinstance(value, float) and 1.0 <= value <= _MOST:
        return (Size(name=f"{PREFIX}{name}{_EIGHTHS}", value=round(8 * _WIDER * value)),)
    return ()


def changed_value(name: str, value: Any, sizes: Sequence[Size]) -> Any:
    """Return an argument's value in a workload with these sizes; it is no tensor."""
    given = {size.name: size.value for size in sizes}
    whole, eighths = f"{PREFIX}{name}", f"{PREFIX}{name}{_EIGHTHS}"
    if whole in given:
        return bool(given[whole]) if isinstance(value, bool) else given[whole]
    return given[eighths] / 8 if eighths in given else value
