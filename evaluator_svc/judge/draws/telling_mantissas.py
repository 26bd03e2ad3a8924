"""Inputs on which rounding to 16 bits or TF32 is a bias, which no averaging hides.

Rounding errors of ordinary values point either way, so a sum over thousands of them looks exact
even where every term was computed in float16. The mantissas made here all end in the second, or all
in the third quarter of the last place that float16 and TF32 have: rounding, or cutting, moves every
value of a tensor in one direction. Which quarter follows from the draw's seed, and where in it from
the element. Every seed has such mantissas, so that none is recognised by them. Values change by
less than one part in a thousand, keep their order, and stay what they are where 11 bits hold them
(whole numbers, masks). Worked on in blocks.
"""

import random
from typing import Final

import torch

_LOST_BITS: Final = 13
"""Bits of a float32's mantissa that float16 and TF32 lack."""

_LOST: Final = (1 << _LOST_BITS) - 1

_QUARTER_BITS: Final = _LOST_BITS - 2

_BLOCK_ELEMENTS: Final = {"cpu": 1 << 18, "cuda": 1 << 23}
"""Elements worked on at a time, with temporaries that a CPU's cache is to hold."""


def with_telling_mantissas(
    tensor: torch.Tensor, seed: int, *, in_place: bool = False
) -> torch.Tensor:
    """Return a changed copy of a float32 tensor, or itself; of other types always itself.

    Args:
        tensor: Any tensor.
        seed: Decides between the second and the third quarter.
        in_place: Whether to change it where it lies.
    """
    if tensor.dtype is not torch.float32:
        return tensor
    quarter = random.Random(seed).choice((1, 2)) << _QUARTER_BITS
    is_own = in_place and tensor.is_contiguous()
    result = tensor if is_own else torch.empty_like(tensor, memory_format=torch.contiguous_format)
    old, new = tensor.reshape(-1), result.view(-1)
    size = _BLOCK_ELEMENTS[tensor.device.type]
    for start in range(0, old.numel(), size):
        bits = old[start : start + size].view(torch.int32)
        ending = bits & _LOST
        moves = ending.ne(0).to(torch.int32)  # 0: it stays
        step = (ending >> 2).sub_(ending).add_(moves, alpha=quarter)
        torch.add(bits, step, out=new[start : start + size].view(torch.int32))
    return result
