"""Values on which rounding to fewer bits than they have is a bias, which no averaging hides.

Rounding errors of ordinary values point either way, so a sum over thousands of them looks exact
even where every term was computed in float16. The mantissas made here all end in one band of the
last place that float16 and TF32 have, those of float64 in one of float32's: rounding, or cutting,
moves every value of a tensor in one direction. How far differs between the tensors of a draw, so
that the biases of factors never cancel each other; in which direction follows from the draw's seed,
and where in the band from the element. Every seed has such mantissas, so that none is recognised by
them. Values change by less than one part in a thousand and stay what they are where 11 bits hold
them, of float64 24 (whole numbers, masks). Worked on in blocks.
"""

import random
from typing import Final

import torch

_LOST_BITS: Final = 13
"""Bits of a float32's mantissa that float16 and TF32 lack."""

_FURTHER_BITS: Final = {torch.float32: 0, torch.float64: 16}
"""So many more are lost of a float64's mantissa in float32."""

_BAND_BITS: Final = _LOST_BITS - 2
"""A band is a quarter of the last place."""

_PLACES: Final = (1 << _BAND_BITS) - 1

_LAST_STEP: Final = 663
"""Places between neighbours of the last axis; odd, as those of other axes are."""

_BANDS: Final = ((2 << 10, (4 << 10) + 1), (1 << 9, 11 << 9), (1, 6 << 10))
"""Where bands begin whose values are rounded down, and up: by 3/8, 3/16 and 1/8 of the last place
in the mean. No sum and no difference of these is nothing. None holds the middle between two values
of 11 bits, which is rounded either way."""

_BLOCK_ELEMENTS: Final = {"cpu": 1 << 18, "cuda": 1 << 23}
"""Elements worked on at a time, with temporaries that a CPU's cache is to hold."""


def with_telling_mantissas(
    tensor: torch.Tensor,
    seed: int,
    *,
    number: int = 0,
    is_distinct: bool = False,
    in_place: bool = False,
) -> torch.Tensor:
    """Return a changed copy of a tensor of float32 or float64, or itself; of other types itself.

    Args:
        tensor: Any tensor.
        seed: Decides the direction.
        number: Of the tensor in its draw: decides how far rounding moves its values.
        is_distinct: Whether neighbours are to differ: the ends of 2048 consecutive elements along
            any axis are all different, so that no two of these become equal. Else values keep
            their order, and those that are nearly equal may become so.
        in_place: Whether to change it where it lies.
    """
    further = _FURTHER_BITS.get(tensor.dtype)
    if further is None or not tensor.numel():
        return tensor
    whole = torch.int64 if further else torch.int32
    lost = (1 << (_LOST_BITS + further)) - 1
    begin = random.Random(seed).choice(_BANDS[number % len(_BANDS)])
    is_own = in_place and tensor.is_contiguous()
    result = tensor if is_own else torch.empty_like(tensor, memory_format=torch.contiguous_format)
    old, new = tensor.reshape(-1), result.view(-1)
    firsts = _first_places(tensor) if is_distinct else None
    size = _BLOCK_ELEMENTS[tensor.device.type]
    for start in range(0, old.numel(), size):
        bits = old[start : start + size].view(whole)
        ending = bits & lost
        moves = ending.ne(0).to(whole)  # 0: it stays
        place = ending >> 2
        if firsts is not None:
            place = (_places(firsts, start, tensor).to(whole) << further).mul_(moves)
        step = place.sub_(ending).add_(moves, alpha=begin << further)
        torch.add(bits, step, out=new[start : start + size].view(whole))
    return result


def _first_places(tensor: torch.Tensor) -> torch.Tensor:
    """Return which place in a band the first element of each row has."""
    places = torch.zeros((), dtype=torch.int64, device=tensor.device)
    for axis, length in enumerate(tensor.shape[:-1]):
        # Odd steps: along an axis no place comes again before all others were there.
        places = places[..., None] + torch.arange(length, device=tensor.device) * _step(axis)
    return places.reshape(-1).bitwise_and_(_PLACES)


def _places(firsts: torch.Tensor, start: int, tensor: torch.Tensor) -> torch.Tensor:
    """Return the places of a block's elements."""
    width = tensor.shape[-1] if tensor.ndim else 1
    stop = min(start + _BLOCK_ELEMENTS[tensor.device.type], tensor.numel())
    index = torch.arange(start, stop, device=tensor.device)
    row = index // width
    column = index.sub_(row * width).mul_(_LAST_STEP)
    return column.add_(firsts[row]).bitwise_and_(_PLACES)


def _step(axis: int) -> int:
    return 2 * (331 * (axis + 2) % 1021) + 1
