"""A part of one parameter, and what takes its place so that a recurrence keeps its state.

Which part it is to be is found out in `unusual_values/lasting_weights.py`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import torch

_GATES: Final = 4
"""Most parts of a vector: a recurrent layer has its gates one after the other."""
_LATCH: Final = 32.0
"""Weight of a unit on itself with which it keeps its sign, whatever comes in."""
_WHOLE: Final = 1.0
"""Weight of a unit on itself with which it keeps its value, if nothing bounds that."""
_SHIFTS: Final = (6.0, -6.0)
"""Biases that open or close a gate: after 400 steps a third of the state is left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightPart:
    """A block of a parameter's first axis and what takes its place."""

    path: str
    first: int
    end: int
    diagonal: float = 0.0
    """A multiple of the identity is put there; 0: a number is added."""
    added: float = 0.0

    def changed(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the parameter with its part changed."""
        result = tensor.clone(memory_format=torch.contiguous_format)
        part = result[self.first : self.end]
        if self.diagonal:
            part.copy_(self.diagonal * torch.eye(len(part), device=part.device))
        else:
            part += self.added
        return result


def parts_of_matrix(path: str, tensor: torch.Tensor) -> Iterator[WeightPart]:
    """Yield the square blocks of a matrix whose rows are a multiple of its columns."""
    if tensor.ndim != 2 or tensor.shape[1] < 2 or tensor.shape[0] % tensor.shape[1]:
        return
    width = tensor.shape[1]
    for diagonal in (_LATCH, _WHOLE):
        for first in range(0, tensor.shape[0], width):
            yield WeightPart(path=path, first=first, end=first + width, diagonal=diagonal)


def parts_of_vector(path: str, tensor: torch.Tensor) -> Iterator[WeightPart]:
    """Yield a vector's gates: the whole of it, halves, thirds, quarters."""
    if tensor.ndim != 1:
        return
    for count in range(1, _GATES + 1):
        if len(tensor) % count:
            continue
        length = len(tensor) // count
        for first in range(0, len(tensor), length):
            for added in _SHIFTS:
                yield WeightPart(path=path, first=first, end=first + length, added=added)
