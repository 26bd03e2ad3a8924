"""The structure of a tensor: properties that its elements have together, so kernels may rely on it.

Order, symmetry, rows that sum to one, equal halves, labels: a reference's inputs promise these,
whereas size and sign of ordinary values are an accident. Tensors are changed in
`judge/unusual_values` and `draws/input_change.py`.
"""

import itertools
import math
from typing import Final

import torch

from evaluator_svc.judge.reference.formats import FLOAT8, computable
from evaluator_svc.judge.tensors.equal_parts import equal_parts

_LEAST_SORTED: Final = 8
"""Elements in order that are no accident: fewest of a row on its own."""
_LEAST_WIDTH: Final = 3
"""Fewest of each row if so many rows are in order that an accident is as unlikely."""
_SHARE_ERROR: Final = {torch.float32: 2e-3, torch.float64: 2e-3}
"""Most that the sum of a row of shares may differ from one, by rounding and telling mantissas."""
_SHARE_ERROR_16_BIT: Final = 3e-2


def structures(tensor: torch.Tensor) -> frozenset[str]:
    """Return the names of a tensor's structures; most tensors have none."""
    if not tensor.numel():
        return frozenset()
    tensor = computable(tensor)
    found = {
        "symmetric": is_symmetric(tensor),
        "rising": _is_sorted(tensor, descending=False),
        "falling": _is_sorted(tensor, descending=True),
        "permutation": _is_permutation(tensor),
        "labels": is_whole(tensor),
        "shares": sums_to_one(tensor),
    }
    parts = equal_parts(tensor) if not found["labels"] else None
    repeated = () if parts is None else (parts.value,)
    return frozenset((*(name for name, is_there in found.items() if is_there), *repeated))


def is_structured(tensor: torch.Tensor) -> bool:
    """Return whether single elements cannot be taken from another draw.

    Labels can: each is one of few values, wherever it comes from. Of equal parts two elements can,
    which `draws/input_change.py` takes together.
    """
    return bool(structures(tensor) - {"labels"})


def is_in_order(tensor: torch.Tensor) -> bool:
    """Return whether all rows rise, or all fall."""
    tensor = computable(tensor)
    return any(_is_sorted(tensor, descending=falls) for falls in (False, True))


def keeps_structure(before: torch.Tensor, after: torch.Tensor) -> bool:
    """Return whether `after`, changed throughout, is bound as `before` is.

    Labels are kept by no change: masks and classes mean what they mean.
    """
    bound = structures(before)
    return not bound or ("labels" not in bound and bound <= structures(after))


def points_one_way(tensor: torch.Tensor) -> bool:
    """Return whether each place of a row names one on the same side of it: a chain ends.

    Elements change, but each with those of other draws at its own place.
    """
    return points_back(tensor) or points_on(tensor)


def points_on(tensor: torch.Tensor) -> bool:
    """Return whether each place of a row names one behind it, or itself, as links of a list do."""
    if not tensor.ndim or tensor.dtype is torch.bool or tensor.is_floating_point():
        return False
    return points_back(mirrored_places(tensor))


def mirrored_places(tensor: torch.Tensor) -> torch.Tensor:
    """Return the places of rows that begin at their ends."""
    return (tensor.shape[-1] - 1 - tensor.long()).flip(-1).to(tensor.dtype)


def points_back(tensor: torch.Tensor) -> bool:
    """Return whether each place of a row names one before it, or itself, as a tree's parents do."""
    is_place = not tensor.is_floating_point() and tensor.dtype is not torch.bool
    if not is_place or not tensor.ndim or tensor.shape[-1] < _LEAST_SORTED:
        return False
    rows = tensor.reshape(-1, tensor.shape[-1])
    own = torch.arange(rows.shape[1], device=tensor.device)
    return all(bool(((part >= 0) & (part <= own)).all()) for part in (rows[:1], rows)) and bool(
        rows.any()
    )


def zeros_lie_alike(one: torch.Tensor, two: torch.Tensor) -> bool:
    """Return whether two draws of an input have zeros, at the same places, and other values."""
    if not one.is_floating_point() or one.dtype in FLOAT8 or one.shape != two.shape:
        return False
    zeros = one == 0
    is_mixed = bool(zeros.any()) and not bool(zeros.all())
    return is_mixed and torch.equal(zeros, two == 0) and not _is_triangular(zeros)


def is_symmetric(tensor: torch.Tensor) -> bool:
    """Return whether a tensor holds symmetric matrices."""
    tensor = computable(tensor)
    if tensor.ndim < 2 or tensor.shape[-1] != tensor.shape[-2] or tensor.shape[-1] < 2:
        return False
    return torch.equal(tensor, tensor.transpose(-1, -2))


def _is_sorted(tensor: torch.Tensor, *, descending: bool) -> bool:
    """Return whether all rows are in order, and not each of one value; masks of lengths are."""
    if tensor.ndim < 1 or tensor.shape[-1] < _LEAST_WIDTH:
        return False
    rows = tensor.reshape(-1, tensor.shape[-1])
    if len(rows) * math.lgamma(rows.shape[1] + 1) < math.lgamma(_LEAST_SORTED + 1):
        return False
    # One row tells most tensors at once.
    return all(_is_in_order(part, descending=descending) for part in (rows[:1], rows)) and bool(
        (rows[:, 0] != rows[:, -1]).any()
    )


def _is_in_order(rows: torch.Tensor, *, descending: bool) -> bool:
    first, second = rows[:, :-1], rows[:, 1:]
    return bool(((first >= second) if descending else (first <= second)).all())


def _is_permutation(tensor: torch.Tensor) -> bool:
    if (
        tensor.is_floating_point()
        or tensor.dtype is torch.bool
        or not tensor.ndim
        or tensor.numel() < _LEAST_SORTED
    ):
        return False
    return all(
        len(torch.unique(row)) == len(row)
        for row in itertools.islice(tensor.reshape(-1, tensor.shape[-1]), 1)
    )


def is_whole(tensor: torch.Tensor) -> bool:
    """Return whether a tensor of floats holds whole numbers or infinities alone: labels, masks."""
    if not tensor.is_floating_point():
        return False
    flat = computable(tensor).reshape(-1)
    return bool(flat.any()) and all(
        bool((part == part.round()).all()) for part in (flat[:_LEAST_SORTED], flat)
    )


def holds_classes(tensor: torch.Tensor) -> bool:
    """Return whether a tensor of floats holds zeros and ones alone, as labels of two classes do."""
    if not tensor.is_floating_point():
        return False
    flat = computable(tensor).reshape(-1)
    return all(bool(((part == 0) | (part == 1)).all()) for part in (flat[:_LEAST_SORTED], flat))


def sums_to_one(tensor: torch.Tensor) -> bool:
    """Return whether each row holds shares of a whole: probabilities, one of several."""
    if tensor.ndim < 1 or tensor.shape[-1] < 2 or tensor.dtype is torch.bool:
        return False
    rows = tensor.reshape(-1, tensor.shape[-1])
    return all(_are_shares(part) for part in (rows[:1], rows))


def _are_shares(rows: torch.Tensor) -> bool:
    if bool((rows < 0).any()):
        return False
    error = _SHARE_ERROR.get(rows.dtype, _SHARE_ERROR_16_BIT) if rows.is_floating_point() else 0.0
    sums = rows.sum(-1, dtype=torch.float32 if rows.is_floating_point() else torch.int64)
    return bool(((sums - 1).abs() <= error).all())


def _is_triangular(zeros: torch.Tensor) -> bool:
    """Return whether zeros are one half of each square matrix, or more of that half alone."""
    if zeros.ndim < 2 or zeros.shape[-1] != zeros.shape[-2]:
        return False
    above, below = (bool((~zeros).triu(1).any()), bool((~zeros).tril(-1).any()))
    return above is not below
