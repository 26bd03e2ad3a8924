"""Which inputs may be next to zero, on which side, since the reference keeps their digits there.

Found by trial: a result that is proportional to one input, from 2^-12 down to 2^-20, has its
digits, as those of `expm1`, `log1p` and `sinh` have. A kernel that adds one on the way and takes it
off again has none of them. Three sorts of references are left alone: what is the same multiple
however large it is, since nobody has a reason to add anything there; what is rounded so itself; and
what stays within bounds on that side, as `tanh` and `elu` below zero do. The bound is the size of
such a function, and its usual formulas are right to within a rounding error of that.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import torch

from evaluator_svc.judge.inputs.few_rows import few_rows
from evaluator_svc.judge.inputs.free_inputs import free_inputs
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PREPARATION_SEED, PreparedWorkload
from evaluator_svc.judge.tensors.tensor_parts import all_finite
from evaluator_svc.judge.unusual_values.beside_values import is_fine
from kernel_foundry.errors import TaskInvalidError

_SMALL: Final = (-20, -12)
"""Binary logarithms of the sizes between which results are to be proportional to an input."""
_LARGE: Final = (6, 12)
"""The same of sizes between which results grow, unless they stay within bounds."""
_MOST_BENT: Final = 2.0**-8
"""Most that a proportional result may be off, beside itself: squares of 2^-12 are less, and what
float32 loses of 2^-20 beside one is more."""
_SAME: Final = 1e-6
"""Most that it is off where nothing but the multiple is rounded."""
_GROWTH: Final = 1.125
"""What grows is larger by this factor at least."""


def kept_sides(prepared: PreparedWorkload) -> Mapping[int, tuple[float, ...]]:
    """Return the signs that elements next to zero may have, by the index of the input.

    Empty where the reference combines elements, or keeps no digits.
    """
    if prepared.traits.combines:
        return {}
    ordinary = prepared.once(few_rows)
    found = {
        index: tuple(
            sign for sign in _signs_of(ordinary.inputs[index]) if _is_kept(ordinary, index, sign)
        )
        for index in free_inputs(prepared, ordinary)
        if is_fine(ordinary.inputs[index])
    }
    return {index: signs for index, signs in found.items() if signs}


def _signs_of(tensor: torch.Tensor) -> tuple[float, ...]:
    return (1.0, -1.0) if bool((tensor < 0).any()) else (1.0,)


def _is_kept(ordinary: InputSet, index: int, sign: float) -> bool:
    """Return whether a result keeps the digits of one input alone, and none has a bound."""
    old = ordinary.inputs[index]
    generator = torch.Generator(old.device).manual_seed(PREPARATION_SEED)
    share = torch.rand(old.shape, generator=generator, dtype=old.dtype, device=old.device)
    sizes = sign * (0.5 + 0.5 * share)

    def outputs(exponent: int) -> Sequence[torch.Tensor]:
        inputs = list(ordinary.inputs)
        inputs[index] = sizes * 2.0**exponent
        return ordinary.with_inputs(inputs).expected()

    try:
        least, small = (outputs(exponent) for exponent in _SMALL)
        proportional = [
            place
            for place, (one, two) in enumerate(zip(least, small, strict=True))
            if _is_multiple(one, two, _SMALL[1] - _SMALL[0], _MOST_BENT)
        ]
        if not proportional:
            return False
        large, largest = (outputs(exponent) for exponent in _LARGE)
    except TaskInvalidError:
        return False
    bent = [
        place
        for place in proportional
        if not _is_multiple(small[place], large[place], _LARGE[0] - _SMALL[1], _SAME)
    ]
    return bool(bent) and all(_grows(large[place], largest[place]) for place in bent)


def _is_multiple(one: torch.Tensor, other: torch.Tensor, exponent: int, most: float) -> bool:
    """Return whether one output times a power of two is the other, and not zero throughout."""
    if not one.is_floating_point() or not bool(one.any()):
        return False
    multiple, found = one.double() * 2.0**exponent, other.double()
    return bool(((found - multiple).abs() <= most * multiple.abs()).all())


def _grows(one: torch.Tensor, other: torch.Tensor) -> bool:
    if not all_finite(one) or not all_finite(other):
        return True
    return float(other.abs().max()) > _GROWTH * float(one.abs().max())
