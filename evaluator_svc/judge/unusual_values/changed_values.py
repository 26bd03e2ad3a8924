"""A tensor's elements made unusual: large, moved, cancelling, of mixed magnitudes, whole, few.

Worked on in blocks, so that a large tensor takes no more than its changed copy. Zeros stay zeros
where the change could break a mask or half of a triangular matrix. Which tensors are changed is in
`distributions.py`.
"""

import math
from collections.abc import Callable
from typing import Final

import torch

from evaluator_svc.judge.reference.formats import computable
from evaluator_svc.judge.tensors.structure import is_in_order, is_symmetric, keeps_structure
from evaluator_svc.judge.tensors.tensor_parts import (
    BLOCK_ELEMENTS,
    EXPONENTS,
    LARGE_FACTOR,
    bits_of,
    by_block,
    by_row,
    generator_of,
    parts_of,
    random_signs,
    root_mean_square,
    rows_of,
)
from evaluator_svc.judge.unusual_values.beside_values import beside_one
from evaluator_svc.judge.unusual_values.changed_matrices import scaled_sides, two_blocks
from evaluator_svc.judge.unusual_values.whole_numbers import absolute, odd_numbers
from kernel_foundry.domain.admission import Distribution

_OFFSET_IN_RMS: Final = 16.0
_BELOW_IN_RMS: Final = 2.0
"""How far below zero the largest element of NEGATIVE is, in units of the root mean square."""
_SPARSE_SHARE: Final = 8
"""Of each row one stretch of one in so many elements stays."""
_STRIDE: Final = 997
"""One element in so many becomes NaN; more in small tensors."""
_MIXED_SHARE: Final = 0.25
"""Where so many elements are negative, and so many positive, sums cancel as they are."""
_LEADERS: Final = 16
"""Elements of a row that are the largest in half of the rows of MAGNITUDES."""
_STRETCHES: Final = 16
"""Parts of an ordered row, each with distances of its own size in MAGNITUDES."""
_JITTER: Final = 2
"""Largest difference between the exponents of a single distance and of its part of the row."""
_LEAST_UNITS: Final = 2.0
"""Least distance there, in units of the largest value's last place, so that different values stay
different."""
_OUTLIER_EXPONENTS: Final = {
    torch.float16: (3.0, 6.0),
    torch.float8_e4m3fn: (1.0, 3.0),
    torch.float8_e5m2: (3.0, 6.0),
}
"""Least and most binary logarithm of an outlier, in units of the root mean square."""
_USUAL_EXPONENTS: Final = (3.0, 8.0)
"""Of formats with the exponents of float32. Beyond 2^6.5 an exponential overflows; below, a
polynomial or a table that ends where ordinary values do is wrong already."""
_ZERO_SHARE: Final = 0.125
"""Of the elements of parameters: what divides by a gain gives no number there."""
_WEIGHT_EXPONENT: Final = {
    torch.float16: 3.0,
    torch.bfloat16: 3.0,
    torch.float8_e4m3fn: 1.0,
    torch.float8_e5m2: 3.0,
}
"""Most binary logarithm of an unusual weight, in units of what is usual; 6 in wider formats."""
_FEW_PARAMETERS: Final = 4
"""Most elements of a parameter of whose signs chance would leave some untried."""
_FEW_SPREAD: Final = 0.125
"""How far the exponents of these are from the largest, beside that."""
_NEAR_ZERO: Final = 2.0**-8
_FEW: Final = 2
"""Elements of a row that stay."""
_PIVOTS: Final = 1
"""Elements at the beginning of a row that stay usual in OUTLIERS and become zero in FEW: an honest
kernel may take sums of differences from the first one, which a single large one makes inexact."""


def large(tensor: torch.Tensor, *, sign: float) -> torch.Tensor:
    """Return a tensor times a large power of two, or less one; of each row half up to twice that.

    The halves alternate, so that a sample at even distances does not tell the size of a row. All
    are multiplied alike where the tensor would lose its structure.
    """
    factor = sign * LARGE_FACTOR.get(tensor.dtype, 64.0)
    uneven = by_row(tensor, lambda values, drawn: factor * _alternating(values, drawn))
    if keeps_structure(tensor, uneven):
        return uneven
    return by_block(tensor, lambda values: values * factor)


def _alternating(values: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
    """Return rows of which every second piece is multiplied by a factor between 1 and 2.

    Pieces are a power of two long, at most half a row; length and factor are drawn for each row.
    """
    width = values.shape[1]
    lengths = max(width.bit_length() - 1, 1)
    place = (drawn * lengths).clamp_(max=lengths - 2**-10)
    length = torch.exp2(place.floor()).long()
    columns = torch.arange(width, device=values.device)
    is_second = torch.div(columns, length, rounding_mode="floor") % 2 == 1
    return torch.where(is_second, values * (1.0 + place.frac()).to(values.dtype), values)


def outliers(tensor: torch.Tensor, *, any_sign: bool) -> torch.Tensor:
    """Return a tensor with one element of each row far beyond all others; zeros stay.

    Args:
        tensor: Ordinary values.
        any_sign: Whether outliers may have the other sign than the values that they replace.
    """
    rows, generator = rows_of(tensor), generator_of(tensor)
    if rows.shape[1] <= _PIVOTS:
        return tensor
    device, shape = tensor.device, (len(rows), 1)
    places = torch.randint(_PIVOTS, rows.shape[1], shape, generator=generator, device=device)
    # Whoever leaves out the end of every row is sure to miss one.
    places[-1] = rows.shape[1] - 1
    least, most = _OUTLIER_EXPONENTS.get(tensor.dtype, _USUAL_EXPONENTS)
    drawn = torch.rand(shape, generator=generator, device=device)
    sizes = root_mean_square(tensor) * torch.exp2(least + (most - least) * drawn)
    if any_sign:
        sizes *= random_signs(sizes, generator)
    replaced = computable(bits_of(rows).gather(1, places).view(tensor.dtype))
    result = rows.clone(memory_format=torch.contiguous_format)
    bits_of(result).scatter_(1, places, bits_of((sizes * replaced.sign()).to(tensor.dtype)))
    return result.reshape(tensor.shape)


def few(tensor: torch.Tensor) -> torch.Tensor:
    """Return zeros but for a few elements at random places of each row."""
    rows = rows_of(tensor)
    if rows.shape[1] <= _PIVOTS:
        return tensor
    shape, generator = (len(rows), _FEW), generator_of(tensor)
    places = torch.randint(_PIVOTS, rows.shape[1], shape, generator=generator, device=tensor.device)
    places[-1, -1] = rows.shape[1] - 1
    result = torch.zeros_like(rows, memory_format=torch.contiguous_format)
    bits_of(result).scatter_(1, places, bits_of(rows).gather(1, places))
    return result.reshape(tensor.shape)


def weights(
    tensor: torch.Tensor, *, is_large: bool, any_sign: bool, has_zeros: bool = False
) -> torch.Tensor:
    """Return a tensor of the usual size, or of this and larger sizes.

    Of a few elements of one sign each gets the other, and is among the largest: a draw of every
    sign and size would leave to chance whether these are tried.

    Args:
        tensor: Ordinary values.
        is_large: Whether elements are multiplied by up to 64, each by a factor of its own.
        any_sign: Whether signs and sizes may be others; else elements only become larger.
        has_zeros: Whether an eighth of the elements is zero.
    """
    most = _WEIGHT_EXPONENT.get(tensor.dtype, 6.0) if is_large else 0.0
    generator, rms = generator_of(tensor), root_mean_square(tensor)
    is_few = has_few(tensor)

    def drawn(values: torch.Tensor) -> torch.Tensor:
        shape, dtype, device = values.shape, values.dtype, values.device
        if any_sign:
            other = torch.randn(shape, generator=generator, dtype=dtype, device=device) * rms
            values = -values if is_few else other
        sizes = torch.rand(shape, generator=generator, dtype=dtype, device=device)
        sizes = 1.0 - _FEW_SPREAD * sizes if is_few else sizes
        values = values * torch.exp2(most * sizes)
        if has_zeros and not is_few:
            is_zero = torch.rand(shape, generator=generator, device=device) < _ZERO_SHARE
            values = torch.where(is_zero, 0.0, values)
        return values

    return by_block(tensor, drawn)


def has_few(tensor: torch.Tensor) -> bool:
    """Return whether a tensor has few elements, all of one sign."""
    return tensor.numel() <= _FEW_PARAMETERS and bool((tensor > 0).all() or (tensor < 0).all())


def _near_one(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor less its mean, small beside one and moved there."""
    mean = (
        sum(float(part.double().nan_to_num().sum()) for part in parts_of(tensor)) / tensor.numel()
    )
    spread = _OFFSET_IN_RMS * root_mean_square(tensor)
    if spread == 0.0:
        return tensor
    return by_block(tensor, lambda values: 1.0 + (values - mean) / spread)


def _near_zero(tensor: torch.Tensor) -> torch.Tensor:
    return by_block(tensor, lambda values: _NEAR_ZERO * values)


def _offset(tensor: torch.Tensor) -> torch.Tensor:
    shift = _OFFSET_IN_RMS * root_mean_square(tensor)
    # Zeros stay: they may be a mask, or half of a triangular matrix.
    return by_block(tensor, lambda values: torch.where(values == 0, values, values + shift))


def _negative(tensor: torch.Tensor) -> torch.Tensor:
    """Return rows below zero, from what is usual to what an exponential makes nothing of."""
    most = LARGE_FACTOR.get(tensor.dtype, 64.0)
    below = _BELOW_IN_RMS * root_mean_square(tensor)

    def moved(values: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
        factor = torch.exp2(math.log2(most) * drawn)
        return torch.where(values == 0, values, -factor * (values.abs() + below))

    return by_row(tensor, moved)


def sparse_with_signs(tensor: torch.Tensor) -> torch.Tensor:
    """Return zeros of either sign but for a stretch in each row."""
    result, generator = _sparse(tensor), generator_of(tensor)
    return by_block(
        result,
        lambda values: torch.where(values == 0, 0.0 * random_signs(values, generator), values),
    )


def _sparse(tensor: torch.Tensor) -> torch.Tensor:
    """Return zeros but for a stretch in each row: a sample of a row tells nothing of the rest."""
    rows = rows_of(tensor)
    length = -(-rows.shape[1] // _SPARSE_SHARE)
    # Places follow from the values, which follow from the seed.
    starts = torch.randint(
        rows.shape[1] - length + 1,
        (len(rows), 1),
        generator=generator_of(tensor),
        device=rows.device,
    )
    # Whoever leaves out the beginning or the end of every row is sure to miss one.
    starts[0], starts[-1] = 0, rows.shape[1] - length
    places = torch.arange(rows.shape[1], device=tensor.device)
    sparse = torch.zeros_like(rows)
    count = max(BLOCK_ELEMENTS // rows.shape[1], 1)
    for first in range(0, len(rows), count):
        part = slice(first, first + count)
        stays = (places >= starts[part]) & (places < starts[part] + length)
        kept = torch.where(stays, computable(rows[part]), 0.0)
        sparse[part] = kept.to(tensor.dtype)
    return sparse.reshape(tensor.shape)


def has_both_signs(tensor: torch.Tensor) -> bool:
    """Return whether so many elements have either sign that sums of them cancel."""
    negative = sum(int((part < 0).sum()) for part in parts_of(tensor))
    positive = sum(int((part > 0).sum()) for part in parts_of(tensor))
    return min(negative, positive) >= _MIXED_SHARE * tensor.numel()


def _signs(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor with random signs; itself where both signs are common already."""
    if has_both_signs(tensor):
        return tensor
    generator = generator_of(tensor)
    return by_block(tensor, lambda values: values * random_signs(values, generator))


def _magnitudes(tensor: torch.Tensor) -> torch.Tensor:
    if is_in_order(tensor):
        return _uneven(tensor)
    if is_symmetric(tensor):
        return scaled_sides(tensor)
    most, generator = EXPONENTS.get(tensor.dtype, 2), generator_of(tensor)

    def scaled(values: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
        exponents = torch.randint(
            -most, most + 1, values.shape, generator=generator, device=values.device
        )
        is_leader, has_leaders = _leaders(values.shape[1], drawn)
        rest = torch.where(has_leaders, exponents.clamp(max=most // 2), exponents)
        return torch.ldexp(values, torch.where(is_leader, most, rest))

    return by_row(tensor, scaled)


def _leaders(width: int, drawn: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return which elements of rows are the largest, and which rows have such ones: about half.

    They lie side by side or at an even distance, a power of two, so that a work-item which takes
    every n-th element may have all of them.

    Args:
        width: Elements of a row.
        drawn: Between 0 and 1 for each row, shape (rows, 1).
    """
    steps = (width // _LEADERS).bit_length()
    if not steps:
        return torch.zeros_like(drawn, dtype=torch.bool), torch.zeros_like(drawn, dtype=torch.bool)
    place = (2.0 * drawn - 1.0).clamp(min=0.0) * (steps - 2**-10)
    step = torch.exp2(place.floor()).long()
    first = (place.frac() * (width - (_LEADERS - 1) * step)).long()
    distance = torch.arange(width, device=drawn.device) - first
    has_leaders = drawn > 0.5
    is_leader = (distance >= 0) & (distance < _LEADERS * step) & (distance % step == 0)
    return is_leader & has_leaders, has_leaders


def _uneven(tensor: torch.Tensor) -> torch.Tensor:
    """Return rows in the same order between the same ends, with distances of mixed magnitudes.

    Most of the distance lies in a few stretches. So where a value lies in its row cannot be told
    from the row's ends, nor by following a slope.
    """
    rows = computable(tensor).reshape(-1, tensor.shape[-1]).double()
    if not bool(rows.isfinite().all()):
        return tensor
    steps, most = rows.diff(dim=-1), EXPONENTS.get(tensor.dtype, 2)
    generator, (count, width), device = generator_of(tensor), steps.shape, tensor.device
    parts = min(_STRETCHES, width)
    exponents = torch.randint(-most, most + 1, (count, parts), generator=generator, device=device)
    # One half of the places, whatever was drawn, has next to none of the distance.
    close = exponents.abs().sub_(most).clamp_(max=-most // 2)
    is_first = torch.randint(0, 2, (count, 1), generator=generator, device=device) == 1
    is_close = (torch.arange(parts, device=device) < parts // 2) == is_first
    far = exponents.scatter(1, torch.where(is_first, parts - 1, 0), most)
    exponents = torch.where(is_close, close, far)
    stretch = torch.arange(width, device=device) * parts // width
    jitter = torch.randint(-_JITTER, _JITTER + 1, steps.shape, generator=generator, device=device)
    whole = rows[:, -1:] - rows[:, :1]
    drawn = torch.ldexp(steps, exponents[:, stretch] + jitter)
    drawn *= (whole / drawn.sum(-1, keepdim=True)).nan_to_num_(nan=0.0)
    unit = torch.finfo(tensor.dtype).eps * rows.abs().amax(-1, keepdim=True)
    drawn = torch.where(drawn.abs() < steps.abs(), _at_least(drawn, steps, unit), drawn)
    drawn *= (whole / drawn.sum(-1, keepdim=True)).nan_to_num_(nan=0.0)
    inner = rows[:, :1] + drawn.cumsum(-1)[:, :-1]
    low, high = torch.aminmax(rows[:, [0, -1]], dim=-1, keepdim=True)
    result = torch.cat((rows[:, :1], inner.clamp_(low, high), rows[:, -1:]), dim=-1)
    return result.to(tensor.dtype).reshape(tensor.shape)


def _at_least(drawn: torch.Tensor, steps: torch.Tensor, unit: torch.Tensor) -> torch.Tensor:
    """Return distances that are no smaller than two units, or than they were."""
    least = torch.minimum(steps.abs(), _LEAST_UNITS * unit)
    return torch.maximum(drawn.abs(), least) * steps.sign()


def _powers(tensor: torch.Tensor) -> torch.Tensor:
    def power(values: torch.Tensor) -> torch.Tensor:
        wide = values if values.dtype is torch.float64 else values.float()
        exponents = torch.frexp(wide).exponent - 1
        return torch.where(wide.isfinite(), torch.ldexp(wide.sign(), exponents), wide)

    return by_block(tensor, power)


def _denormal(tensor: torch.Tensor) -> torch.Tensor:
    tiny = torch.finfo(tensor.dtype).smallest_normal
    return by_block(tensor, lambda values: values.clamp(-1.0, 1.0).double().mul(tiny / 4))


def _non_finite(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor with NaN in some elements, and infinity in some of the last quarter.

    So there is NaN alone in most rows, at other places than in another tensor.
    """
    result = tensor.clone(memory_format=torch.contiguous_format)
    flat = result.view(-1)
    stride = max(min(_STRIDE, tensor.numel() // 4), 2)
    (start,) = torch.randint(stride, (1,), generator=generator_of(tensor), device=tensor.device)
    flat[int(start) :: stride] = torch.nan
    flat[3 * len(flat) // 4 :][int(start) :: stride] = torch.inf
    return result


CHANGES: Final[dict[Distribution, Callable[[torch.Tensor], torch.Tensor]]] = {
    Distribution.OFFSET: _offset,
    Distribution.ZEROS: torch.zeros_like,
    Distribution.SPARSE: _sparse,
    Distribution.DENORMAL: _denormal,
    Distribution.NON_FINITE: _non_finite,
    Distribution.SIGNS: _signs,
    Distribution.MAGNITUDES: _magnitudes,
    Distribution.INTEGERS: odd_numbers,
    Distribution.POWERS: _powers,
    Distribution.BLOCKS: two_blocks,
    Distribution.NEGATIVE: _negative,
    Distribution.NEAR_ONE: _near_one,
    Distribution.NEAR_ZERO: _near_zero,
    Distribution.BESIDE_ONE: beside_one,
    Distribution.ABSOLUTE: absolute,
}
"""What becomes of a tensor; LARGE, OUTLIERS, FEW and those of parameters and of integers are
functions above, what needs more than one tensor lies in files of its own."""
