"""Whether a reference gives numbers on unusual values, and numbers that mean something."""

from collections.abc import Callable, Sequence
from typing import Final

import torch

from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.reference.formats import FLOAT8
from evaluator_svc.judge.tensors.rounding_noise import RoundingNoise, moved_by_units
from evaluator_svc.judge.tensors.scales import group_scale, groups_of
from evaluator_svc.judge.tensors.tensor_parts import all_finite, generator_of, none_is_nan
from kernel_foundry.errors import TaskInvalidError

_UNITS: Final = 4
"""Units in the last place by which large values are moved."""
_NEAR: Final = 2.0**-14
"""Most that this may move a result, as a share of it and of its row's scale."""
_NEAR_16_BIT: Final = 2.0**-4
"""The same in 16 bits: still less than an overflow does."""


def is_defined(changed: InputSet) -> bool:
    """Return whether the reference gives numbers, in all outputs."""
    return _are_all(changed, defined_outputs(changed))


def has_no_nan(changed: InputSet) -> bool:
    """Return whether the reference gives numbers or infinities, in all outputs."""
    return _are_all(changed, outputs_without_nan(changed))


def is_well_defined(changed: InputSet) -> bool:
    """Return whether neither rounding nor formats decide what any output is."""
    return is_defined(changed) and _are_all(changed, well_defined_outputs(changed))


def is_well_defined_in_part(changed: InputSet) -> bool:
    """Return whether neither decides what one output of floating point is, at least."""
    return any(changed.expected()[i].is_floating_point() for i in well_defined_outputs(changed))


def defined_outputs(changed: InputSet) -> frozenset[int]:
    """Return the outputs that the reference gives numbers for, by index."""
    return _outputs(changed, all_finite)


def outputs_without_nan(changed: InputSet) -> frozenset[int]:
    """Return those that it gives numbers or infinities for, by index."""
    return _outputs(changed, none_is_nan)


def well_defined_outputs(changed: InputSet) -> frozenset[int]:
    """Return the outputs with numbers that neither rounding nor formats decide, by index.

    A reference that overflows in float16 asks nobody to do better. Differences of large values are
    rounding errors of these: it is asked where the two largest along each axis are nearly the same,
    but for values in steps, which are equal or far from each other as they are.
    """
    found, is_narrow = defined_outputs(changed), changed.module.is_narrow
    if found and is_narrow:
        found = _near(found, changed.run(), changed.expected(), _NEAR_16_BIT)
    if not found:
        return found
    share = _NEAR_16_BIT if is_narrow else _NEAR
    if changed.is_stepped:
        moved = changed.with_inputs(list(map(_with_equals_moved, changed.inputs)))
        with RoundingNoise(seed=changed.seed, device=changed.module.device, equals_alike=True):
            perturbed = moved.run()
        return _near(found, perturbed, changed.expected(), share)
    tied = changed.with_inputs(list(map(_with_ties, changed.inputs)))
    moved = tied.with_inputs(list(map(_moved, tied.inputs)))
    return _near(found, moved.expected(), tied.expected(), share)


def _are_all(changed: InputSet, outputs: frozenset[int]) -> bool:
    return bool(outputs) and len(outputs) == len(changed.expected())


def _outputs(changed: InputSet, is_right: Callable[[torch.Tensor], bool]) -> frozenset[int]:
    """Return the outputs of which something is right; none where the reference raises."""
    try:
        expected = changed.expected()
    except TaskInvalidError:
        return frozenset()
    return frozenset(i for i, output in enumerate(expected) if is_right(output))


def _near(
    outputs: frozenset[int],
    ones: Sequence[torch.Tensor],
    others: Sequence[torch.Tensor],
    share: float,
) -> frozenset[int]:
    """Return those of some outputs that hardly differ, and those that are not of floats."""
    return frozenset(
        i
        for i in outputs
        if not ones[i].is_floating_point()
        or not ones[i].numel()
        or _is_near(ones[i], others[i], share)
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
    """Return a tensor whose largest element along each axis has a neighbour as large."""
    if not tensor.is_floating_point() or tensor.dtype in FLOAT8 or not tensor.numel():
        return tensor
    tied = tensor.clone(memory_format=torch.contiguous_format)
    for axis, length in enumerate(tensor.shape):
        largest, places = tied.max(axis, keepdim=True)
        places = torch.where(places % 2 == 0, places + 1, places - 1)
        tied.scatter_(axis, places.clamp(max=length - 1), largest)
    return tied


def _moved(tensor: torch.Tensor) -> torch.Tensor:
    """Return every second element along each axis some rounding errors larger."""
    if not tensor.is_floating_point() or tensor.dtype in FLOAT8:
        return tensor
    is_moved = torch.ones((), dtype=torch.bool, device=tensor.device)
    for length in tensor.shape:
        is_odd = torch.arange(length, device=tensor.device) % 2 == 1
        is_moved = is_moved[..., None] ^ is_odd
    return torch.where(is_moved, tensor * (1.0 + _UNITS * torch.finfo(tensor.dtype).eps), tensor)


def _with_equals_moved(tensor: torch.Tensor) -> torch.Tensor:
    """Return elements some rounding errors larger or smaller, and equal ones still equal."""
    if tensor.dtype in FLOAT8 or not tensor.numel():
        return tensor
    generator = generator_of(tensor)
    return moved_by_units(tensor, generator=generator, units=_UNITS, equals_alike=True)
