"""Hints for outputs that are wrong on unusual inputs, by `Distribution`'s values."""

from typing import Final

_ANY_WEIGHTS = (
    "Rely on no zeros, signs or sizes of parameters; where the task means them, its sidecar has the"
    " parameter among its `constants`. Where single terms outweigh all others, errors of parts with"
    " few bits average out no longer."
)
_RANGE = (
    "Keep the range of float32 and all bits of each term: parts in float16 overflow beyond 65504,"
    " unless each row is scaled by a power of two, and exp2f(fma(s, c, -m * c)) exceeds one where s"
    " is large; exp2f((s - m) * c) does not."
)
HINTS: Final = {
    "large": (
        "Subtract the maximum before exp, and keep sums and squares from overflowing; parts in"
        " float16 overflow beyond 65504, unless each row is scaled by a power of two."
    ),
    "offset": "Subtract the mean before squaring, and sum in float32 at least.",
    "zeros": "What follows from parameters and constants alone has to come out as usual.",
    "sparse": "Leave out no work because inputs look like zeros.",
    "signs": "Keep all bits of each term: sums may cancel.",
    "magnitudes": _RANGE,
    "integers": _RANGE,
    "powers": "Compute in float32 whatever the inputs are.",
    "outliers": "Look at every element: a sample of a row does not tell its largest.",
    "few": "Leave out no work because inputs look like zeros.",
    "weights": _ANY_WEIGHTS,
    "usual_weights": _ANY_WEIGHTS,
    "weight_outliers": _ANY_WEIGHTS,
    "blocks": "Leave out no iteration: on such inputs none is without effect.",
    "large_integers": (
        "Compute with all bits that an integer's type has; float32 holds 24 of them. A remainder"
        " has the sign that the reference gives it."
    ),
    "negative": "Begin a maximum at minus infinity, and subtract it before exp.",
    "alike": (
        "Leave out nothing that differs only where inputs are near each other, in one bit, in"
        " their signs or in the order of a row."
    ),
    "dense": (
        "Rely on no zeros of inputs; where the task means them, its sidecar has the input among its"
        " `constants`."
    ),
    "extremes": (
        "Do as the reference does where a mask keeps nothing of a row or of a block, a share is"
        " zero, or a label is the loss's ignore_index. Select by a mask: NaN times zero is NaN."
    ),
    "beside_one": (
        "Take the logarithm of what is close to one from its difference to one: the shares of"
        " exponent and mantissa cancel there. Next to zero, add nothing that is taken off again: a"
        " series, expm1 and log1p keep all digits."
    ),
    "near_one": "Leave out no factor: products of many need not vanish.",
    "near_zero": "Leave out no factor: products of many need not vanish.",
    "absolute": "Subtract the maximum before exp, whatever size inputs usually have.",
    "huge": "Square nothing before it is divided by the largest: hypot does so.",
    "tiny": "Square nothing before it is divided by the largest: hypot does so.",
    "lasting_weights": "Take each step from the state before it: a state need not fade.",
    "close": "Subtract before squaring: squares less products leave nothing of a small difference.",
    "far": (
        "Begin a maximum at minus infinity, and a minimum at infinity; leave out what is minus"
        " infinity before two are subtracted, and square what is 16 bits wide in float32."
    ),
    "places": (
        "Add with atomics or by one work-item for each place, take all bits of a place, count on no"
        " most for a place, and on no row that has anything."
    ),
    "level": (
        "Subtract the mean before squaring, or let no variance be less than zero: a root of that is"
        " no number."
    ),
    "small": "Add what the reference adds to a variance or length, and where it adds it.",
    "bounds": (
        "Compare and cut off as the reference does, at its bounds and beyond them; a row may have"
        " none, some or nothing but what it compares with. A series for the middle of a domain"
        " needs another one for its ends."
    ),
    "ordered": (
        "Look back as far as the reference does, and count on no most for a run, for records or for"
        " one number of a row."
    ),
}
NO_NUMBER_HINTS: Final = {
    "non_finite": (
        "Keep NaN and infinity to what the reference makes of them: leave out what is no number"
        " where it does, and select by a mask, since NaN times zero is NaN."
    ),
    "zeros": "Guard divisions and logarithms as the reference does.",
    "places": (
        "Select by a row's length: NaN behind its end times zero is NaN. Divide by a length as the"
        " reference does where it is zero or one."
    ),
}
"""Where an output is no number but should be one; else `HINTS`."""
SWALLOWED: Final = (
    "The reference gives NaN or infinity there: let them through. fminf, fmaxf and clamps by them"
    " return the operand that is a number; x < 0 ? 0 : x keeps NaN."
)
LOST_BITS: Final = (
    "The numbers are close, they lack bits: where single terms outweigh all others, or cancel,"
    " errors of parts with few bits average out no longer. Take one more part, or parts of rows"
    " that are scaled by powers of two, and accumulate in float32."
)
FEW_BITS: Final = frozenset(
    {
        *("large", "absolute", "negative", "far", "zeros", "non_finite", "signs", "magnitudes"),
        *("integers", "powers", "outliers", "weights", "usual_weights", "weight_outliers"),
    }
)
"""Distributions on which a number that is close lacks bits; on the others `HINTS` says of what."""
