"""A tensor's elements made unusual: large, moved, cancelling, of mixed magnitudes, whole, few.

Worked on in blocks, so that a large tensor takes no more than its changed copy. Zeros stay zeros
where the change could break a mask or half of a triangular matrix. Which tensors are changed is in
`value_ranges.py`.
"""

import math
from collections.abc import Callable
from typing import Final

import torch

from evaluator_svc.judge.draws.structure import is_in_order, is_symmetric, keeps_structure
from evaluator_svc.judge.reference.formats import computable
from kernel_foundry.domain.admission import Distribution

_LARGE_FACTOR: Final = {
    torch.float16: 8.0,
    torch.bfloat16: 8.0,
    torch.float8_e4m3fn: 2.0,
    torch.float8_e5m2: 8.0,
}
"""Of formats that hold less than 64 times what is usual."""
_OFFSET_IN_RMS: Final = 16.0
_BELOW_IN_RMS: Final = 2.0
"""How far below zero the largest element of NEGATIVE is, in units of the root mean square."""
_SPARSE_SHARE: Final = 8
"""Of each row one stretch of one in so many elements stays."""
_LEAST_ROW: Final = 16
"""Elements of a row; shorter ones are taken together."""
_STRIDE: Final = 997
"""One element in so many becomes NaN, and one infinite; more in small tensors."""
_MIXED_SHARE: Final = 0.25
"""Where so many elements are negative, and so many positive, sums cancel as they are."""
_EXPONENTS: Final = {torch.float32: 10, torch.float64: 10, torch.bfloat16: 10}
"""Most that MAGNITUDES adds to an exponent, or takes away; 2 in formats of few exponents."""
_LEADERS: Final = 16
"""Elements of a row that are the largest in half of the rows of MAGNITUDES."""
_STRETCHES: Final = 16
"""Parts of a row in order, each of which has distances of its own in MAGNITUDES…"""
_JITTER: Final = 2
"""…and the most that a single one's exponent differs from those of its stretch."""
_LEAST_UNITS: Final = 2.0
"""Least distance there, in units of the largest value's last place: what differs stays so."""
_INTEGERS: Final = {torch.float32: 1 << 12, torch.float64: 1 << 12}
"""Half of the greatest of INTEGERS; 4 in formats of few bits."""
_OUTLIER_EXPONENTS: Final = {
    torch.float16: (3.0, 6.0),
    torch.float8_e4m3fn: (1.0, 3.0),
    torch.float8_e5m2: (3.0, 6.0),
}
"""Least and most binary logarithm of an outlier, in units of the root mean square."""
_USUAL_EXPONENTS: Final = (3.0, 8.0)
"""Of formats with the exponents of float32. Beyond 2^6.5 an exponential overflows; below, a
polynomial or a table that ends where ordinary values do is wrong already."""
_LEAST_COUPLING: Final = 4
"""Least that BLOCKS takes away from the exponents of elements between two blocks."""
_LEAST_MATRIX: Final = 4
"""Rows and columns of what has blocks."""
_WEIGHT_EXPONENT: Final = {
    torch.float16: 3.0,
    torch.bfloat16: 3.0,
    torch.float8_e4m3fn: 1.0,
    torch.float8_e5m2: 3.0,
}
"""Most binary logarithm of an unusual weight, in units of what is usual; 6 in wider formats."""
_INTEGER_BITS: Final = {torch.int64: 40}
"""Of large integers; 30 in formats of up to 32 bits, which hold the sum of two. 64 bits are there
to be used: what fits 32 says nothing of a kernel that computes in those."""
_NARROW_INTEGERS: Final = (torch.int8, torch.uint8, torch.int16)
"""Formats of which large integers have any size alike: few bits are no small numbers."""
_ABSOLUTE_RMS: Final = 64.0
"""What ABSOLUTE has for a root mean square: of numbers drawn evenly, too, some are beyond 88, where
an exponential overflows…"""
_ABSOLUTE_MOST: Final = 240.0
"""…and the most, which bfloat16 holds exactly and whose square float16 holds."""
_FAR_FROM_ONE: Final = 0.5
"""Root mean square below which LARGE does not reach what an exponential overflows on."""
_NEAR_ZERO: Final = 2.0**-8
_SIDE_EXPONENT: Final = 4
"""Most that the exponents of a symmetric matrix's rows and columns change by in MAGNITUDES."""
_FEW: Final = 2
"""Elements of a row that stay."""
_PIVOTS: Final = 1
"""Elements at the beginning of a row that stay usual in OUTLIERS, and zero in FEW: an honest
kernel may take sums of differences from the first one, which a single large one makes inexact."""
_BLOCK_ELEMENTS: Final = 1 << 22


def large(tensor: torch.Tensor, *, sign: float) -> torch.Tensor:
    """Return a tensor times a large power of two, or less one; of each row half up to twice that.

    The halves alternate, so that a sample at even distances does not tell the size of a row. All
    are multiplied alike where the tensor would lose its structure.
    """
    factor = sign * _LARGE_FACTOR.get(tensor.dtype, 64.0)
    uneven = _by_row(tensor, lambda values, drawn: factor * _alternating(values, drawn))
    if keeps_structure(tensor, uneven):
        return uneven
    return _by_block(tensor, lambda values: values * factor)


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
    rows, generator = _rows(tensor), _generator(tensor)
    if rows.shape[1] <= _PIVOTS:
        return tensor
    device, shape = tensor.device, (len(rows), 1)
    places = torch.randint(_PIVOTS, rows.shape[1], shape, generator=generator, device=device)
    least, most = _OUTLIER_EXPONENTS.get(tensor.dtype, _USUAL_EXPONENTS)
    drawn = torch.rand(shape, generator=generator, device=device)
    sizes = _rms(tensor) * torch.exp2(least + (most - least) * drawn)
    if any_sign:
        sizes *= _random_signs(sizes, generator)
    replaced = computable(_bits(rows).gather(1, places).view(tensor.dtype))
    result = rows.clone(memory_format=torch.contiguous_format)
    _bits(result).scatter_(1, places, _bits((sizes * replaced.sign()).to(tensor.dtype)))
    return result.reshape(tensor.shape)


def few(tensor: torch.Tensor) -> torch.Tensor:
    """Return zeros but for a few elements at random places of each row."""
    rows = _rows(tensor)
    if rows.shape[1] <= _PIVOTS:
        return tensor
    shape, generator = (len(rows), _FEW), _generator(tensor)
    places = torch.randint(_PIVOTS, rows.shape[1], shape, generator=generator, device=tensor.device)
    # Whoever leaves out the end of every row is sure to miss one.
    places[-1, -1] = rows.shape[1] - 1
    result = torch.zeros_like(rows, memory_format=torch.contiguous_format)
    _bits(result).scatter_(1, places, _bits(rows).gather(1, places))
    return result.reshape(tensor.shape)


def weights(tensor: torch.Tensor, *, is_large: bool, any_sign: bool) -> torch.Tensor:
    """Return a dense tensor of the usual size, or of this and larger sizes.

    Args:
        tensor: Ordinary values.
        is_large: Whether elements are multiplied by up to 64, each by a factor of its own.
        any_sign: Whether signs and sizes may be others; else elements only become larger.
    """
    most = _WEIGHT_EXPONENT.get(tensor.dtype, 6.0) if is_large else 0.0
    generator, rms = _generator(tensor), _rms(tensor)

    def drawn(values: torch.Tensor) -> torch.Tensor:
        shape, dtype, device = values.shape, values.dtype, values.device
        if any_sign:
            values = torch.randn(shape, generator=generator, dtype=dtype, device=device) * rms
        sizes = torch.rand(shape, generator=generator, dtype=dtype, device=device)
        return values * torch.exp2(most * sizes)

    return _by_block(tensor, drawn)


def large_integers(tensor: torch.Tensor, *, any_sign: bool = False) -> torch.Tensor:
    """Return integers of random sizes, from the usual to the largest.

    Zeros stay. The tensor itself where its type has no larger ones.

    Args:
        tensor: Ordinary values.
        any_sign: Whether signs are drawn; else each element keeps its own.
    """
    any_sign &= torch.iinfo(tensor.dtype).min < 0
    most = min(torch.iinfo(tensor.dtype).max, 1 << _INTEGER_BITS.get(tensor.dtype, 30))
    usual = max(int(tensor.max()), -int(tensor.min()), 1)
    room = (most // usual).bit_length() - 1
    if room < 1:
        return tensor
    # From the values, which follow from the seed.
    seed = int(tensor.flatten()[:_LEAST_ROW].long().sum()) % 2**31
    generator = torch.Generator(tensor.device).manual_seed(seed)

    def larger(values: torch.Tensor) -> torch.Tensor:
        shape, device = values.shape, values.device
        if tensor.dtype in _NARROW_INTEGERS:
            drawn = torch.randint(1, most + 1, shape, generator=generator, device=device)
            grown = drawn * values.long().sign()
            return grown * _random_signs(grown, generator) if any_sign else grown
        bits = torch.randint(room + 1, shape, generator=generator, device=device, dtype=torch.int64)
        share = torch.rand(shape, generator=generator, device=device, dtype=torch.float64)
        grown = (values.long() << bits) + torch.ldexp(share, bits).long() * values.sign()
        return grown * _random_signs(grown, generator) if any_sign else grown

    return _by_block(tensor, larger)


def with_fractions(tensor: torch.Tensor, *, any_sign: bool) -> torch.Tensor:
    """Return whole floats with fractions; half of the rows are larger besides, up to 64 times.

    Zeros stay. Numbers become larger, so that none changes its sign.

    Args:
        tensor: Ordinary values.
        any_sign: Whether signs are drawn; else each element keeps its own.
    """
    most, generator = math.log2(_LARGE_FACTOR.get(tensor.dtype, 64.0)), _generator(tensor)

    def moved(values: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
        shape, dtype, device = values.shape, values.dtype, values.device
        fraction = torch.rand(shape, generator=generator, dtype=dtype, device=device)
        factor = torch.exp2(most * (2.0 * drawn - 1.0).clamp(min=0.0)).to(dtype)
        grown = factor * (values + fraction * values.sign())
        return grown * _random_signs(grown, generator) if any_sign else grown

    return _by_row(tensor, moved)


def absolute(tensor: torch.Tensor) -> torch.Tensor:
    """Return whole numbers of up to 240; the tensor itself where LARGE has such numbers.

    Zeros stay.
    """
    rms = _rms(tensor)
    is_reached = tensor.element_size() >= torch.float32.itemsize and rms >= _FAR_FROM_ONE
    if is_reached or rms == 0.0 or tensor.element_size() < torch.float16.itemsize:
        return tensor

    def whole(values: torch.Tensor) -> torch.Tensor:
        scaled = (values.double() * (_ABSOLUTE_RMS / rms)).round()
        return scaled.clamp(-_ABSOLUTE_MOST, _ABSOLUTE_MOST)

    return _by_block(tensor, whole)


def _blocks(tensor: torch.Tensor) -> torch.Tensor:
    """Return matrices in two blocks each, at random, with small elements beside them.

    On one side smaller than on the other: what balances, orthogonalises or follows the largest of
    two near values takes many rounds. Symmetric ones stay so.
    """
    if tensor.ndim < 2 or min(tensor.shape[-2:]) < _LEAST_MATRIX:
        return tensor
    rows, cols = tensor.shape[-2:]
    matrices, generator = tensor.reshape(-1, rows, cols), _generator(tensor)
    most, device = _EXPONENTS.get(tensor.dtype, 2), tensor.device

    def drawn(low: int, high: int) -> torch.Tensor:
        """Return a whole number for each matrix, shape (matrices, 1, 1)."""
        shape = (len(matrices), 1, 1)
        return torch.randint(low, high + 1, shape, generator=generator, device=device)

    split_row = drawn(rows // 4, rows - rows // 4)
    split_col = split_row if rows == cols else drawn(cols // 4, cols - cols // 4)
    above = drawn(min(_LEAST_COUPLING, most), most)
    is_symmetric = rows == cols and torch.equal(tensor, tensor.mT)
    below = above if is_symmetric else drawn(0, most)
    is_low = torch.arange(rows, device=device)[:, None] >= split_row
    is_right = torch.arange(cols, device=device) >= split_col
    result = torch.empty_like(matrices, memory_format=torch.contiguous_format)
    count = max(_BLOCK_ELEMENTS // (rows * cols), 1)
    for first in range(0, len(matrices), count):
        part = slice(first, first + count)
        taken = torch.where(~is_low[part] & is_right[part], above[part], 0)
        taken = torch.where(is_low[part] & ~is_right[part], below[part], taken)
        result[part] = torch.ldexp(computable(matrices[part]), -taken).to(tensor.dtype)
    return result.reshape(tensor.shape)


def is_graph(tensor: torch.Tensor) -> bool:
    """Return whether a tensor holds square matrices of zeros and ones, any number in a row."""
    if tensor.ndim < 2 or tensor.shape[-1] != tensor.shape[-2] or tensor.shape[-1] < _LEAST_MATRIX:
        return False
    tensor = computable(tensor)
    counts = tensor.count_nonzero(-1)
    is_either = bool(((tensor == 0) | (tensor == 1)).all())
    return is_either and bool((counts != counts.reshape(-1)[0]).any())


def cycles(tensor: torch.Tensor) -> torch.Tensor:
    """Return graphs of which each is one cycle through all nodes: no way is longer.

    Symmetric ones lead both ways. The seed follows from how many edges there were.
    """
    size, device = tensor.shape[-1], tensor.device
    result = torch.zeros_like(tensor, memory_format=torch.contiguous_format)
    generator = torch.Generator(device).manual_seed(int(tensor.count_nonzero()))
    both_ways = is_symmetric(tensor)
    for graph in result.view(-1, size, size):
        order = torch.randperm(size, generator=generator, device=device)
        graph[order, order.roll(-1)] = 1
        if both_ways:
            graph[order.roll(-1), order] = 1
    return result


def _near_one(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor less its mean, small beside one and moved there."""
    mean = sum(float(part.double().nan_to_num().sum()) for part in _parts(tensor)) / tensor.numel()
    spread = _OFFSET_IN_RMS * _rms(tensor)
    if spread == 0.0:
        return tensor
    return _by_block(tensor, lambda values: 1.0 + (values - mean) / spread)


def _near_zero(tensor: torch.Tensor) -> torch.Tensor:
    return _by_block(tensor, lambda values: _NEAR_ZERO * values)


def _offset(tensor: torch.Tensor) -> torch.Tensor:
    shift = _OFFSET_IN_RMS * _rms(tensor)
    # Zeros stay: they may be a mask, or half of a triangular matrix.
    return _by_block(tensor, lambda values: torch.where(values == 0, values, values + shift))


def _negative(tensor: torch.Tensor) -> torch.Tensor:
    """Return rows below zero, from what is usual to what an exponential makes nothing of."""
    most = _LARGE_FACTOR.get(tensor.dtype, 64.0)
    below = _BELOW_IN_RMS * _rms(tensor)

    def moved(values: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
        factor = torch.exp2(math.log2(most) * drawn)
        return torch.where(values == 0, values, -factor * (values.abs() + below))

    return _by_row(tensor, moved)


def _by_row(
    tensor: torch.Tensor, change: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    """Return a tensor of which each row changes by a number of its own, drawn between 0 and 1.

    The first and the last row have the ends of that stretch.
    """
    rows = _rows(tensor)
    shape, device = (len(rows), 1), tensor.device
    drawn = torch.rand(shape, generator=_generator(tensor), device=device)
    drawn[-1:], drawn[:1] = 0.0, 1.0
    result = torch.empty_like(rows, memory_format=torch.contiguous_format)
    count = max(_BLOCK_ELEMENTS // rows.shape[1], 1)
    for first in range(0, len(rows), count):
        part = slice(first, first + count)
        result[part] = change(computable(rows[part]), drawn[part]).to(tensor.dtype)
    return result.reshape(tensor.shape)


def _sparse(tensor: torch.Tensor) -> torch.Tensor:
    """Return zeros but for a stretch in each row: a sample of a row tells nothing of the rest."""
    rows = _rows(tensor)
    length = -(-rows.shape[1] // _SPARSE_SHARE)
    # Places follow from the values, which follow from the seed.
    starts = torch.randint(
        rows.shape[1] - length + 1, (len(rows), 1), generator=_generator(tensor), device=rows.device
    )
    # Whoever leaves out the beginning or the end of every row is sure to miss one.
    starts[0], starts[-1] = 0, rows.shape[1] - length
    places = torch.arange(rows.shape[1], device=tensor.device)
    sparse = torch.zeros_like(rows)
    count = max(_BLOCK_ELEMENTS // rows.shape[1], 1)
    for first in range(0, len(rows), count):
        part = slice(first, first + count)
        stays = (places >= starts[part]) & (places < starts[part] + length)
        kept = torch.where(stays, computable(rows[part]), 0.0)
        sparse[part] = kept.to(tensor.dtype)
    return sparse.reshape(tensor.shape)


def _signs(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor with random signs; itself where both signs are common already."""
    negative = sum(int((part < 0).sum()) for part in _parts(tensor))
    positive = sum(int((part > 0).sum()) for part in _parts(tensor))
    if min(negative, positive) >= _MIXED_SHARE * tensor.numel():
        return tensor
    generator = _generator(tensor)
    return _by_block(tensor, lambda values: values * _random_signs(values, generator))


def _magnitudes(tensor: torch.Tensor) -> torch.Tensor:
    if is_in_order(tensor):
        return _uneven(tensor)
    if is_symmetric(tensor):
        return _scaled_sides(tensor)
    most, generator = _EXPONENTS.get(tensor.dtype, 2), _generator(tensor)

    def scaled(values: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
        exponents = torch.randint(
            -most, most + 1, values.shape, generator=generator, device=values.device
        )
        is_leader, has_leaders = _leaders(values.shape[1], drawn)
        rest = torch.where(has_leaders, exponents.clamp(max=most // 2), exponents)
        return torch.ldexp(values, torch.where(is_leader, most, rest))

    return _by_row(tensor, scaled)


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


def _scaled_sides(tensor: torch.Tensor) -> torch.Tensor:
    """Return symmetric matrices whose rows and columns are multiplied by powers of two alike.

    What is positive definite stays so; eigenvalues get far apart.
    """
    most, generator = min(_EXPONENTS.get(tensor.dtype, 2), _SIDE_EXPONENT), _generator(tensor)
    sides = torch.randint(
        -most, most + 1, tensor.shape[:-1], generator=generator, device=tensor.device
    )
    exponents = sides[..., :, None] + sides[..., None, :]
    return torch.ldexp(computable(tensor), exponents).to(tensor.dtype)


def _uneven(tensor: torch.Tensor) -> torch.Tensor:
    """Return rows in the same order between the same ends, with distances of mixed magnitudes.

    Most of the distance lies in a few stretches: the ends do not show where a value belongs
    of a row, nor by following a slope.
    """
    rows = computable(tensor).reshape(-1, tensor.shape[-1]).double()
    if not bool(rows.isfinite().all()):
        return tensor
    steps, most = rows.diff(dim=-1), _EXPONENTS.get(tensor.dtype, 2)
    generator, (count, width), device = _generator(tensor), steps.shape, tensor.device
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


def _integers(tensor: torch.Tensor) -> torch.Tensor:
    half, generator = _INTEGERS.get(tensor.dtype, 4), _generator(tensor)

    def whole(values: torch.Tensor) -> torch.Tensor:
        drawn = torch.randint(
            half // 2, half, values.shape, generator=generator, device=values.device
        )
        return (2 * drawn + 1).to(values.dtype) * values.sign()

    return _by_block(tensor, whole)


def _powers(tensor: torch.Tensor) -> torch.Tensor:
    def power(values: torch.Tensor) -> torch.Tensor:
        wide = values if values.dtype is torch.float64 else values.float()
        exponents = torch.frexp(wide).exponent - 1
        return torch.where(wide.isfinite(), torch.ldexp(wide.sign(), exponents), wide)

    return _by_block(tensor, power)


def _denormal(tensor: torch.Tensor) -> torch.Tensor:
    tiny = torch.finfo(tensor.dtype).smallest_normal
    return _by_block(tensor, lambda values: values.clamp(-1.0, 1.0).double().mul(tiny / 4))


def _non_finite(tensor: torch.Tensor) -> torch.Tensor:
    result = tensor.clone(memory_format=torch.contiguous_format)
    flat = result.view(-1)
    stride = max(min(_STRIDE, tensor.numel() // 4), 2)
    flat[stride // 2 :: stride] = float("nan")
    flat[stride // 4 :: stride] = float("inf")
    return result


CHANGES: Final[dict[Distribution, Callable[[torch.Tensor], torch.Tensor]]] = {
    Distribution.OFFSET: _offset,
    Distribution.ZEROS: torch.zeros_like,
    Distribution.SPARSE: _sparse,
    Distribution.DENORMAL: _denormal,
    Distribution.NON_FINITE: _non_finite,
    Distribution.SIGNS: _signs,
    Distribution.MAGNITUDES: _magnitudes,
    Distribution.INTEGERS: _integers,
    Distribution.POWERS: _powers,
    Distribution.BLOCKS: _blocks,
    Distribution.NEGATIVE: _negative,
    Distribution.NEAR_ONE: _near_one,
    Distribution.NEAR_ZERO: _near_zero,
    Distribution.ABSOLUTE: absolute,
}
"""What becomes of a tensor; LARGE, OUTLIERS, FEW and those of parameters and of integers are
functions above, what needs more than one tensor lies in files of its own."""


def _by_block(tensor: torch.Tensor, change: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    result = torch.empty_like(tensor, memory_format=torch.contiguous_format)
    flat = result.view(-1)
    for index, part in enumerate(torch.split(tensor.reshape(-1), _BLOCK_ELEMENTS)):
        changed = change(computable(part)).to(tensor.dtype)
        flat[index * _BLOCK_ELEMENTS :][: part.numel()] = changed
    return result


def _rows(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor of elements as `(rows, width)`; short rows are taken together."""
    width = tensor.shape[-1] if tensor.ndim else 1
    return tensor.reshape(-1, width if width >= _LEAST_ROW else tensor.numel())


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """Return a view that can be gathered and scattered; PyTorch does neither with 8-bit floats."""
    return tensor.view(torch.uint8) if tensor.element_size() == 1 else tensor


def _rms(tensor: torch.Tensor) -> float:
    """Return the root mean square of the elements that are finite."""
    squares = sum(
        float(torch.where(part.isfinite(), part, 0.0).double().square_().sum())
        for part in _parts(tensor)
    )
    return float((squares / tensor.numel()) ** 0.5)


def _parts(tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return tuple(map(computable, torch.split(tensor.reshape(-1), _BLOCK_ELEMENTS)))


def _random_signs(values: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    drawn = torch.randint(0, 2, values.shape, generator=generator, device=values.device)
    return (2 * drawn - 1).to(values.dtype)


def _generator(values: torch.Tensor) -> torch.Generator:
    """Return a generator whose seed differs between draws."""
    first = computable(values.flatten()[:_LEAST_ROW]).float()
    first = first.nan_to_num(posinf=0.0, neginf=0.0)
    seed = int(first.view(torch.int32).to(torch.int64).sum()) % 2**31
    return torch.Generator(values.device).manual_seed(seed)
