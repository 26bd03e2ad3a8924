"""What somebody may have meant by a name that nothing has."""

import difflib
from collections.abc import Iterable, Sequence
from typing import Final

_LONGEST: Final = 60
"""Characters that are compared: the time grows with their square."""
_MOST_NAMED: Final = 8


def did_you_mean(name: str, known: Iterable[str], *, likeness: float = 0.6) -> str:
    """Return ": did you mean optimize?" for the known name most like `name`; "" for none.

    Args:
        name: As it was given.
        known: What it may mean.
        likeness: Least share of both names that is the same, in [0, 1].
    """
    found = difflib.get_close_matches(name[:_LONGEST], list(known), n=1, cutoff=likeness)
    return f": did you mean {found[0]}?" if found else ""


def likely(name: str, known: Sequence[str]) -> str:
    """Return what to say after a name that is none of `known`, without listing many.

    It is ": did you mean norm1_eps? Like it are norm1_bias" where some are like it, else the first
    of them: "; known are x, weight and 36 more".

    Args:
        name: As it was given.
        known: What it may mean, the likeliest first.
    """
    found = difflib.get_close_matches(name[:_LONGEST], known, n=_MOST_NAMED)
    if not found:
        rest = len(known) - _MOST_NAMED
        more = f" and {rest} more" if rest > 0 else ""
        return f"; known are {', '.join(known[:_MOST_NAMED])}{more}" if known else "; there is none"
    first, *others = found
    like_it = f" Like it are {', '.join(others)}" if others else ""
    return f": did you mean {first}?{like_it}"
