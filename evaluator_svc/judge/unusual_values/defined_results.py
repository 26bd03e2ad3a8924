"""Whether a reference gives numbers on unusual values, and numbers that mean something."""

from collections.abc import Callable, Sequence
from typing import Final

import torch

from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.reference.formats import FLOAT8
from evaluator_svc.judge.tensors.scales import group_scale, groups_of
from evaluator_svc.judge.tensors.tensor_parts import all_finite, none_is_nan, rows_of
from kernel_foundry.errors import TaskInvalidError

_UNITS: Final = 4
"""Units in the last place by which large values are moved."""
_NEAR: Final = 2.0**-14
"""Most that this may move a result, as a share of it and of its row's scale."""
_NEAR_16_BIT: Final = 2.0**-4
"""The same in 16 bits: still less than an overflow does."""


def is_defined(changed: InputSet) -> bool:
    """Return whether the reference gives numbers."""
    return _all_are(changed, all_finite)


def has_no_nan(changed: InputSet) -> bool:
    """Return whether the reference gives numbers or infinities."""
    return _all_are(changed, none_is_nan)


def _all_are(changed: InputSet, is_right: Callable[[torch.Tensor], bool]) -> bool:
    try:
        return all(map(is_right, changed.expected()))
    except TaskInvalidError:
        return False


def is_well_defined(changed: InputSet) -> bool:
    """Return whether the reference gives numbers that neither rounding nor its formats decide.

    A reference that overflows in float16 asks nobody to do better. Differences of large values are
    rounding errors of these: it is asked where the two largest of each row are nearly the same.
    """
    if not is_defined(changed):
        return False
    is_narrow = changed.module.is_narrow
    if is_narrow and not _are_near(changed.run(), changed.expected(), _NEAR_16_BIT):
        return False
    tied = changed.with_inputs([_with_ties(tensor) for tensor in changed.inputs])
    moved = tied.with_inputs([_moved(tensor) for tensor in tied.inputs])
    return _are_near(moved.expected(), tied.expected(), _NEAR_16_BIT if is_narrow else _NEAR)


def _are_near(ones: Sequence[torch.Tensor], others: Sequence[torch.Tensor], share: float) -> bool:
    return all(
        _is_near(one, other, share)
        for one, other in zip(ones, others, strict=True)
        if one.is_floating_point() and one.numel()
    )


def _is_near(one: torch.Tensor, other: torch.Tensor, share: float) -> bool:
    """Return whether elements differ by little beside themselves and their rows, as compared.

    Rows that all but vanish, as those of a GELU far below zero, are rounding errors throughout.
    """
    groups = groups_of(tuple(other.shape))
    ours, theirs = groups.lines(one).double(), groups.lines(other).double()
    scale = groups.scale_of(group_scale(other).double(), 0, len(theirs))
    return bool(((ours - theirs).abs() <= share * (theirs.abs() + scale)).all())


def _with_ties(tensor: torch.Tensor) -> torch.Tensor:
    """Return rows whose largest element has a neighbour as large."""
    if not tensor.is_floating_point() or tensor.dtype in FLOAT8 or not tensor.numel():
        return tensor
    rows = rows_of(tensor).clone(memory_format=torch.contiguous_format)
    largest, places = rows.max(-1, keepdim=True)
    places = torch.where(places % 2 == 0, places + 1, places - 1)
    rows.scatter_(1, places.clamp(max=rows.shape[1] - 1), largest)
    return rows.reshape(tensor.shape)


def _moved(tensor: torch.Tensor) -> torch.Tensor:
    """Return every second element some rounding errors larger."""
    if not tensor.is_floating_point() or tensor.dtype in FLOAT8:
        return tensor
    moved = tensor.clone(memory_format=torch.contiguous_format)
    moved.view(-1)[::2] *= 1.0 + _UNITS * torch.finfo(tensor.dtype).eps
    return moved
