"""Which elements of an output share a scale, and what that is: the root mean square of them.

Of the element's row (of its image, for batches of images), since one output can span ten orders of
magnitude; of its column where rows are a few elements, as those of points and angles.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import torch

CHUNK_ELEMENTS: Final = 1 << 26
"""Most elements that are worked on with temporaries."""
_CACHED_ELEMENTS: Final = 1 << 15
"""The same on a host's core: its own cache holds them, and they are too few for torch to share
among threads, which would wait for each other more than they work."""

MIN_GROUP: Final = 16
"""Fewest elements with a scale of their own: the scale of a few is as noisy as they are."""

_SCALE_FLOOR: Final = 1e-6
"""Least scale of a row, in units of the whole output's: a dead row still has rounding noise."""

_FEW_FLOOR: Final = 0.25
"""The same of a row with fewer than `MIN_GROUP` elements that are not zero, as behind a ReLU: what
is left of them may be next to nothing, but was rounded where the others were cut off."""

_LEVEL: Final = 2.0**-23
"""Most that the elements of a row of one number differ by, in units of the whole output's scale."""

_FEW_ELEMENTS: Final = 1 << 22
"""Most elements that are counted with temporaries."""

_LEAST_NORM: Final = 1e-15
"""Of a row whose squares float32 still holds."""

_COLUMN_FLOOR: Final = 1e-3
"""The same of a column: what cancels there had the size of its row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """Which elements of an output share a scale: element i is of group i // inner % count."""

    count: int
    inner: int
    """Neighbours in memory; 1 for columns."""

    @property
    def is_columns(self) -> bool:
        """Whether each group is a column of the lines."""
        return self.inner == 1 and self.count > 1

    def lines(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a tensor as matrix: each line is a group, or has an element of each."""
        return tensor.reshape(-1, self.count if self.is_columns else self.inner)

    def scale_of(self, scale: torch.Tensor, start: int, stop: int) -> torch.Tensor:
        """Return the groups' scales, to be broadcast over some of the lines."""
        return scale[None, :] if self.is_columns else scale[start:stop, None]


def group_scale(tensor: torch.Tensor) -> torch.Tensor:
    """Return the root mean square of each group of a floating-point tensor, float32.

    Works in pieces of `CHUNK_ELEMENTS`, so that large tensors need no large temporaries.
    """
    groups = groups_of(tuple(tensor.shape))
    lines = groups.lines(tensor)
    axis = 0 if groups.is_columns else 1
    norms = [_norms(p, axis) for p in row_chunks(lines)]
    norm = torch.stack(norms).norm(dim=0) if groups.is_columns else torch.cat(norms)
    scale = norm.div_(math.sqrt(lines.shape[axis])).nan_to_num_(nan=0.0, posinf=0.0)
    # In one tensor: on a GPU each number that is read waits for the device.
    square, least = torch.stack((scale.double().square().mean(), scale.min().double())).tolist()
    whole = math.sqrt(square)
    floor = _COLUMN_FLOOR if groups.is_columns else _SCALE_FLOOR
    if not groups.is_columns and least < _FEW_FLOOR * whole:
        _raise_few(scale, lines, _FEW_FLOOR * whole)
    return scale.clamp_(min=max(floor * whole, 1e-35)).contiguous()


def scale_without_inputs(tensor: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Return the scales of an output for inputs of zeros, which follows from parameters alone.

    A channel is one number then, and where that cancels its terms had the size of the others'.

    Args:
        tensor: The output.
        scale: As `group_scale` gives it.
    """
    groups = groups_of(tuple(tensor.shape))
    if groups.is_columns:
        return scale
    floor = _FEW_FLOOR * float(scale.double().square().mean().sqrt())
    ends = [piece.float().aminmax(dim=1) for piece in row_chunks(groups.lines(tensor))]
    spread = torch.cat([end.max - end.min for end in ends])
    is_level = spread <= _LEVEL * floor / _FEW_FLOOR
    return torch.where(is_level, scale.clamp(min=floor), scale)


def _raise_few(scale: torch.Tensor, lines: torch.Tensor, floor: float) -> None:
    """Raise the scales of rows with few elements that are not zero to a floor."""
    small = (scale < floor).nonzero().flatten()
    for rows in torch.split(small, max(_FEW_ELEMENTS // lines.shape[1], 1)):
        few = lines[rows].float().count_nonzero(dim=1) < MIN_GROUP
        scale[rows[few]] = floor


def _norms(lines: torch.Tensor, axis: int) -> torch.Tensor:
    norms: torch.Tensor = torch.linalg.vector_norm(lines.float(), dim=axis)
    is_told = norms.isfinite() & (norms > _LEAST_NORM)
    if bool(is_told.all()):
        return norms
    # Squares may have overflowed, or vanished; an infinity is none of its neighbours' scale.
    wide = lines.double()
    norm: torch.Tensor = torch.linalg.vector_norm(wide.where(~wide.isinf(), 0.0), dim=axis)
    return norm.float()


def cached_elements(device: torch.device) -> int:
    """Return how many elements to work on at a time where each is read more than once."""
    return _CACHED_ELEMENTS if device.type == "cpu" else CHUNK_ELEMENTS


def row_chunks(grouped: torch.Tensor, elements: int | None = None) -> Iterator[torch.Tensor]:
    """Yield views of consecutive rows, each a single row or of at most `elements` elements.

    None: `CHUNK_ELEMENTS`.
    """
    rows = max((elements or CHUNK_ELEMENTS) // max(grouped.shape[1], 1), 1)
    for start in range(0, len(grouped), rows):
        yield grouped[start : start + rows]


def groups_of(shape: tuple[int, ...]) -> Groups:
    """Return the rows of a matrix, the channels of images (rank 4 and up), or short columns.

    Where no rows but the whole would be a group, and the last axes have few places, each of these
    is a group of its own.
    """
    axis = 2 if len(shape) >= 4 else len(shape) - 1
    while axis > 0 and math.prod(shape[axis:]) < MIN_GROUP:
        axis -= 1
    if axis > 0:
        return Groups(count=math.prod(shape[:axis]), inner=max(math.prod(shape[axis:]), 1))
    size, columns = math.prod(shape), 1
    for length in reversed(shape):
        if columns * length >= MIN_GROUP:
            break
        columns *= length
    if columns > 1 and size >= MIN_GROUP * columns:
        return Groups(count=columns, inner=1)
    return Groups(count=1, inner=max(size, 1))
