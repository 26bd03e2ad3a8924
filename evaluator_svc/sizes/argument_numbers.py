"""Numbers among forward's arguments, and how a generated workload gives them other values.

A workload can only hold whole numbers: `forward.steps=4` gives the argument `steps` the value 4,
`forward.share/8=5` gives `share` 5/8.

Further values are a ladder, which is climbed as far as the reference gives numbers: several times
as large, and, of what is below one, so near to one that little of a decay is lost in many steps.
"""

from collections.abc import Sequence
from typing import Any, Final

from kernel_foundry.domain.task import Size

PREFIX: Final = "forward."
_EIGHTHS: Final = 8
_BEYOND_ONE: Final = (12, _EIGHTHS)
_NEAR_ONE: Final = (63, 64)
_NEXT_TO_ONE: Final = (255, 256)
_WHOLES: Final = (8, 64, 256)
"""What shares are of."""
_TIMES: Final = 2
_MORE: Final = 2
"""Factor of a whole number, and the number that is added to it."""
_MANY_TIMES: Final = 16
_MOST_STEPS: Final = 64
"""Largest whole number that many times one becomes: it may be a number of rounds."""
_WIDER: Final = (4, 2)
_MUCH_WIDER: Final = (16, 8)
"""Factors of a float that is not below one, the best first."""
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
        return _shares(name, value, (5, _EIGHTHS), (3, _EIGHTHS))
    return ()


def values_beyond(name: str, value: object) -> tuple[Size, ...]:
    """Return values above one of a float argument below it, larger ones of other numbers.

    A slope, a decay or a temperature may be on either side, a power, a width or a number of steps
    larger; a probability or an axis may not, and the reference then refuses it. The best first, one
    nearer to what is given last; empty for others.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return (Size(name=f"{PREFIX}{name}", value=_TIMES * value + _MORE),)
    return _floats_beyond(name, value, (_BEYOND_ONE, _NEAR_ONE), _WIDER)


def values_further(name: str, value: object) -> tuple[Size, ...]:
    """Return values next to one of a float argument below it, much larger ones of other numbers.

    The best first, one nearer to what is given last; empty for others.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        more = min(_MANY_TIMES * value, _MOST_STEPS)
        has_more = value > 0 and more > _TIMES * value + _MORE
        return (Size(name=f"{PREFIX}{name}", value=more),) if has_more else ()
    return _floats_beyond(name, value, (_NEXT_TO_ONE, _NEAR_ONE), _MUCH_WIDER)


def _floats_beyond(
    name: str, value: object, shares: Sequence[tuple[int, int]], factors: Sequence[int]
) -> tuple[Size, ...]:
    if not isinstance(value, float) or not 0.0 < value <= _MOST:
        return ()
    if value < 1.0:
        return _shares(name, value, *shares)
    wider = ((round(_EIGHTHS * factor * value), _EIGHTHS) for factor in factors)
    return _shares(name, value, *wider)


def _shares(name: str, value: float, *shares: tuple[int, int]) -> tuple[Size, ...]:
    return tuple(
        Size(name=f"{PREFIX}{name}/{whole}", value=parts)
        for parts, whole in shares
        if value != parts / whole
    )


def changed_value(name: str, value: Any, sizes: Sequence[Size]) -> Any:
    """Return an argument's value in a workload with these sizes; it is no tensor."""
    given = {size.name: size.value for size in sizes}
    own = f"{PREFIX}{name}"
    if own in given:
        return bool(given[own]) if isinstance(value, bool) else given[own]
    parts = (given[key] / whole for whole in _WHOLES if (key := f"{own}/{whole}") in given)
    return next(parts, value)
