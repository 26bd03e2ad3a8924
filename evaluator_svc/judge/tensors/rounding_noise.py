"""The reference run with every result moved by a rounding error (Monte Carlo arithmetic).

That is what another order of the same operations does to its outputs.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
from torch.utils._pytree import tree_map

from evaluator_svc.judge.reference.operators import OperatorMode, operator_name, rounds
from evaluator_svc.judge.tensors.tensor_parts import by_cached_part

SAFETY: Final = {
    torch.float64: 8.0,
    torch.float32: 8.0,
    torch.float16: 2.0,
    torch.bfloat16: 2.0,
    torch.float8_e4m3fn: 1.0,
    torch.float8_e5m2: 1.0,
}
"""Multiple of the noise: other algorithms round more often than a reordering does. Less for 16
bits, where PyTorch rounds after every operator and a fused kernel hardly ever does."""

CEILING: Final = {
    torch.float64: 5e-3,
    torch.float32: 5e-3,
    torch.float16: 5e-2,
    torch.bfloat16: 1e-1,
    torch.float8_e4m3fn: 0.2,
    torch.float8_e5m2: 0.4,
}
"""Largest tolerance, in units of the row's scale: a larger one would check nothing."""

UNKNOWN: Final = 4.0
"""Further multiple of the noise if the exact result is not known: the error of the reference itself
is as large as the measured noise, and another algorithm may err the other way."""

_CLEAR: Final = 8.0
"""Another run of the noise needs at most this multiple of the tolerance that the first one
needs."""
_TELLING: Final = 256
"""That holds if each output has at least so many elements: few may all be exact by chance."""

_ANY_NUMBER: Final = 256.0
"""Largest number that replaces NaN."""
_EXACT_RESULTS: Final = frozenset({"floor", "ceil", "round", "trunc", "sign", "one_hot"})
"""Operators whose float results are whole numbers in any order of evaluation."""

_CANCELLING: Final = frozenset({"gelu"})
"""Operators that multiply their input by a sum of two numbers which may all but vanish: far below
zero, one and an error function near -1. An honest formula is off there by rounding errors of these
two, however small the result is."""

COPYING: Final = frozenset({
    "abs", "amax", "amin", "aminmax", "clamp", "clamp_max", "clamp_min", "cummax", "cummin",
    "kthvalue", "max", "maximum", "median", "min", "minimum", "neg", "relu", "sort", "topk",
    "where",
})  # fmt: skip
"""Operators whose results are values of their inputs, or zero: none rounds."""


def one_run_tells(outputs: Sequence[torch.Tensor], needed: float, enough: float) -> bool:
    """Return whether another run, with other changes, would not need more than `enough` either.

    Args:
        outputs: Of the reference.
        needed: The tolerance that the first run needs.
        enough: A tolerance, in the same units.
    """
    has_many = all(o.is_floating_point() and o.numel() >= _TELLING for o in outputs)
    return has_many and _CLEAR * needed <= enough


def moved_by_units(
    tensor: torch.Tensor,
    *,
    generator: torch.Generator,
    units: float = 1.0,
    breaks_ties: bool = False,
    equals_alike: bool = False,
) -> torch.Tensor:
    """Return floats moved by units in the last place, up or down at random; others stay.

    Args:
        tensor: Of any type.
        generator: Of the directions.
        units: At least one: half of one would be rounded away.
        breaks_ties: Whether zeros become the least normal number of either sign.
        equals_alike: Whether equal values move alike, as where each is computed by itself.
    """
    if not tensor.is_floating_point():
        return tensor
    format_ = torch.finfo(tensor.dtype)
    drawn = _Shares(generator, of_values=equals_alike)

    def move(part: torch.Tensor) -> torch.Tensor:
        sign = drawn(part).sub_(0.5).sign_()
        moved = (part.double() * (1.0 + units * format_.eps * sign.double())).to(part.dtype)
        if breaks_ties:
            moved = torch.where(part == 0, (format_.tiny * sign.double()).to(part.dtype), moved)
        return moved

    return by_cached_part(tensor, move)


class _Shares:
    """Draws numbers between 0 and 1 for parts of a tensor, float32.

    Args:
        generator: Of the numbers.
        of_values: Whether equal elements get the same number.
    """

    def __init__(self, generator: torch.Generator, *, of_values: bool) -> None:
        self._generator = generator
        self._factor: torch.Tensor | None = None
        if of_values:
            device = generator.device
            drawn = torch.randint(1 << 62, (1,), generator=generator, device=device)
            self._factor = 2 * drawn + 1

    def __call__(self, part: torch.Tensor) -> torch.Tensor:
        if self._factor is None:
            return torch.rand(
                part.shape, generator=self._generator, dtype=torch.float32, device=part.device
            )
        # The highest bits of a product tell of all bits.
        product = part.double().view(torch.int64) * self._factor
        return (product.double() / 2.0**64 + 0.5).float()


class RoundingNoise(OperatorMode):
    """While active, moves every float result of an operator by up to half a unit in the last place.

    Args:
        seed: Of the changes.
        device: Where the operators run.
        units: Most that a result is moved by, in units of its last place.
        replaces_nan: Whether NaN becomes any number.
        kept: Names of operators whose results stay.
        equals_alike: Whether equal elements of a result move alike.
    """

    def __init__(
        self,
        *,
        seed: int,
        device: torch.device,
        units: float = 0.5,
        replaces_nan: bool = False,
        kept: frozenset[str] = frozenset(),
        equals_alike: bool = False,
    ) -> None:
        super().__init__()
        self._units = units
        self._replaces_nan = replaces_nan
        self._kept = _EXACT_RESULTS | kept
        self._equals_alike = equals_alike
        self._generator = torch.Generator(device).manual_seed(seed)

    def run(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run the operator, then perturb what it made anew."""
        result = func(*args, **kwargs)
        name = operator_name(func)
        if name in self._kept or not rounds(func, args):
            return result
        if name in _CANCELLING:
            result = result + self._inner_error(args[0], result).to(result.dtype)
        return tree_map(self._perturb, result)

    def _inner_error(self, value: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
        """Return rounding errors of elements in the format that torch computes them in.

        None where the sum is far below a unit in the last place of one: it is zero in any formula.
        """
        inner = value.float() if value.itemsize < torch.float32.itemsize else value
        least = torch.finfo(inner.dtype).eps / 16 * inner.abs()
        error: torch.Tensor = self._perturb(inner) - inner
        return error.where(result.abs() >= least, 0.0)

    def _perturb(self, value: Any) -> Any:
        if not _is_float(value):
            return value
        if value.device != self._generator.device:
            return value  # a size or an index on the host, on its way to the device
        drawn = _Shares(self._generator, of_values=self._equals_alike)
        return by_cached_part(value, lambda part: self._moved(part, drawn(part)))

    def _moved(self, value: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
        factor = drawn.mul_(2.0).sub_(1.0)
        if self._replaces_nan:
            value = torch.where(value.isnan(), (_ANY_NUMBER * factor).to(value.dtype), value)
        factor = factor.mul_(self._units * torch.finfo(value.dtype).eps)
        # Rounding again would eat changes of less than one unit: add them in double.
        return (value.double() * (1.0 + factor.double())).to(value.dtype)


def _is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()
