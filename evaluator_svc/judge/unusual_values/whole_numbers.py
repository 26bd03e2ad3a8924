"""Whole numbers of sizes that ordinary ones do not have, in tensors of integers and of floats.

Which integers may be changed is in `unusual_integers.py`.
"""

import math
from typing import Final

import torch

from evaluator_svc.judge.tensors.tensor_parts import (
    LARGE_FACTOR,
    LEAST_ROW,
    by_block,
    by_row,
    generator_of,
    random_signs,
    root_mean_square,
)

_INTEGERS: Final = {torch.float32: 1 << 12, torch.float64: 1 << 12}
"""Half of the largest number of INTEGERS; 4 in formats of few bits."""
_INTEGER_BITS: Final = {torch.int64: 40}
"""Bits of large integers that may not fill their type. In other formats they have 30, so that 32
bits hold the sum of two. An int64 has more, since numbers that fit 32 bits would not find a kernel
that computes in 32."""
_WHOLE_SHARE: Final = 0.25
"""Share of the integers that fill their type; all values are as likely, so most are among the
largest."""
_NARROW_INTEGERS: Final = (torch.int8, torch.uint8, torch.int16)
"""Formats in which all values are as likely; with few bits, large ones would otherwise be rare."""
_ABSOLUTE_RMS: Final = 64.0
"""Root mean square of ABSOLUTE. Some numbers, also if drawn evenly, are beyond 88, where an
exponential overflows."""
_ABSOLUTE_MOST: Final = 240.0
"""Largest number of ABSOLUTE: bfloat16 holds it exactly, and float16 holds its square."""
_LEAST_SHARE: Final = 1 / 64
"""Share of signed integers that fill their type which get its least number: that has no positive
counterpart."""
_FAR_FROM_ONE: Final = 0.5
"""Root mean square below which LARGE does not reach what an exponential overflows on."""


def large_integers(
    tensor: torch.Tensor,
    *,
    any_sign: bool = False,
    bits: int | None = None,
    spare_bits: int | None = None,
) -> torch.Tensor:
    """Return integers of random sizes, from the usual to the largest.

    Zeros stay. The tensor itself where its type has no larger ones and signs stay.

    Args:
        tensor: Ordinary values.
        any_sign: Whether signs are drawn; else each element keeps its own.
        bits: Most bits of a number; None: as many as the type is tried with.
        spare_bits: How many bits of their type are left; None: so many that what a reference
            computes of a few of them is within it.
    """
    any_sign &= torch.iinfo(tensor.dtype).min < 0
    most = torch.iinfo(tensor.dtype).max
    is_whole_type = spare_bits is not None
    if spare_bits is None:
        most = min(most, 1 << _INTEGER_BITS.get(tensor.dtype, 30))
    else:
        most >>= spare_bits
    if bits is not None:
        most = min(most, 1 << bits)
    # One more: a share of one unit is added.
    usual = max(int(tensor.max()), -int(tensor.min()), 1) + is_whole_type
    room = max((most // usual).bit_length() - 1, 0)
    if room < 1 and not any_sign:
        return tensor
    has_least = (is_whole_type and spare_bits == 0) or tensor.dtype in _NARROW_INTEGERS
    has_least &= any_sign or bool((tensor < 0).any())
    # From the values, which follow from the seed.
    seed = int(tensor.flatten()[:LEAST_ROW].long().sum()) % 2**31
    generator = torch.Generator(tensor.device).manual_seed(seed)

    def signed(grown: torch.Tensor) -> torch.Tensor:
        if any_sign:
            grown = grown * random_signs(grown, generator)
        if not has_least:
            return grown
        is_least = torch.rand(grown.shape, generator=generator, device=grown.device) < _LEAST_SHARE
        return torch.where(is_least & (grown < 0), torch.iinfo(tensor.dtype).min, grown)

    def larger(values: torch.Tensor) -> torch.Tensor:
        shape, device = values.shape, values.device
        if tensor.dtype in _NARROW_INTEGERS:
            drawn = torch.randint(1, most + 1, shape, generator=generator, device=device)
            return signed(drawn * values.long().sign())
        bits = torch.randint(room + 1, shape, generator=generator, device=device, dtype=torch.int64)
        share = torch.rand(shape, generator=generator, device=device, dtype=torch.float64)
        grown = (values.long() << bits) + torch.ldexp(share, bits).long() * values.sign()
        if is_whole_type:
            drawn = torch.randint(1, most, shape, generator=generator, device=device)
            grown = torch.where(share < _WHOLE_SHARE, drawn * values.long().sign(), grown)
        return signed(grown)

    return by_block(tensor, larger)


def with_fractions(
    tensor: torch.Tensor, *, any_sign: bool, bits: int | None = None
) -> torch.Tensor:
    """Return whole floats with fractions; half of the rows are larger besides, up to 64 times.

    Zeros stay.

    Args:
        tensor: Ordinary values.
        any_sign: Whether signs are drawn; else each element keeps its own.
        bits: Binary logarithm of what larger ones do not exceed; None: they may be any.
    """
    most, generator = math.log2(LARGE_FACTOR.get(tensor.dtype, 64.0)), generator_of(tensor)
    if bits is not None:
        usual = max(float(tensor.abs().max()), 1.0) + 1.0
        most = max(min(most, bits - math.log2(usual)), 0.0)

    def moved(values: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
        shape, dtype, device = values.shape, values.dtype, values.device
        fraction = torch.rand(shape, generator=generator, dtype=dtype, device=device)
        factor = torch.exp2(most * (2.0 * drawn - 1.0).clamp(min=0.0)).to(dtype)
        grown = factor * (values + fraction * values.sign())
        return grown * random_signs(grown, generator) if any_sign else grown

    return by_row(tensor, moved)


def absolute(tensor: torch.Tensor) -> torch.Tensor:
    """Return whole numbers of up to 240; the tensor itself where LARGE has such numbers.

    Zeros stay.
    """
    rms = root_mean_square(tensor)
    is_reached = tensor.element_size() >= torch.float32.itemsize and rms >= _FAR_FROM_ONE
    if is_reached or rms == 0.0 or tensor.element_size() < torch.float16.itemsize:
        return tensor

    def whole(values: torch.Tensor) -> torch.Tensor:
        scaled = (values.double() * (_ABSOLUTE_RMS / rms)).round()
        return scaled.clamp(-_ABSOLUTE_MOST, _ABSOLUTE_MOST)

    return by_block(tensor, whole)


def odd_numbers(tensor: torch.Tensor) -> torch.Tensor:
    """Return odd whole numbers of as many bits as INTEGERS has, with the signs of the tensor."""
    half, generator = _INTEGERS.get(tensor.dtype, 4), generator_of(tensor)

    def whole(values: torch.Tensor) -> torch.Tensor:
        drawn = torch.randint(
            half // 2, half, values.shape, generator=generator, device=values.device
        )
        return (2 * drawn + 1).to(values.dtype) * values.sign()

    return by_block(tensor, whole)
