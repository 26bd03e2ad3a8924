"""Rows of one value each, like padding and plain pictures, whose variance is only rounding error.

A kernel that computes variance as mean of squares less square of mean gets a negative number there,
and NaN from its root. The order of a sum decides the digits here, so any finite result passes;
other draws check how accurate such a kernel is.
"""

from functools import partial

import torch

from evaluator_svc.judge.inputs.free_inputs import with_free_inputs
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PREPARATION_SEED, PreparedWorkload
from evaluator_svc.judge.reference.formats import FLOAT8
from evaluator_svc.judge.tensors.tensor_parts import LARGE_FACTOR, root_mean_square
from evaluator_svc.judge.unusual_values.defined_results import is_defined
from evaluator_svc.judge.unusual_values.far_rows import defined_inputs
from evaluator_svc.judge.unusual_values.slices import with_slices


def with_level_slices(prepared: PreparedWorkload, input_set: InputSet) -> InputSet:
    """Return a set with slices of one value in some inputs; itself where none has any."""
    if not prepared.traits.divides_sums:
        return input_set
    return _with_levels(prepared, input_set, prepared.once(_level_inputs), has_powers=False)


def _level_inputs(prepared: PreparedWorkload) -> frozenset[int]:
    """Return the inputs that may have such slices, by index."""
    ordinary = prepared.shared_set(PREPARATION_SEED)

    def is_taken(chosen: frozenset[int]) -> bool:
        # Where nothing is rounded: else a number may be what rounding left of none.
        changed = _with_levels(prepared, ordinary, chosen, has_powers=True)
        return changed is not ordinary and is_defined(changed)

    floats = (i for i, tensor in enumerate(ordinary.inputs) if _has_levels(tensor))
    return defined_inputs(floats, is_taken)


def _with_levels(
    prepared: PreparedWorkload, input_set: InputSet, chosen: frozenset[int], *, has_powers: bool
) -> InputSet:
    """Return slices of one value, or of powers of two, whose sums and squares round nothing."""
    is_across = prepared.traits.is_across(input_set.seed)

    def level(index: int, tensor: torch.Tensor) -> torch.Tensor:
        if index not in chosen:
            return tensor
        return _level(tensor, has_powers=has_powers, is_across=is_across)

    return with_free_inputs(prepared, input_set, level)


def _has_levels(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() and tensor.dtype not in FLOAT8 and tensor.ndim > 1


def _level(tensor: torch.Tensor, *, has_powers: bool, is_across: bool) -> torch.Tensor:
    usual = root_mean_square(tensor)
    if usual == 0.0:
        return tensor
    change = partial(
        _level_values,
        usual=usual,
        most=LARGE_FACTOR.get(tensor.dtype, 64.0),
        has_signs=bool((tensor < 0).any()),
        has_powers=has_powers,
    )
    return with_slices(tensor, change, is_across=is_across)


def _level_values(
    old: torch.Tensor,
    drawn: torch.Tensor,
    *,
    usual: float,
    most: float,
    has_signs: bool,
    has_powers: bool,
) -> torch.Tensor:
    """Return slices of one value each, from what is usual up to `most` times that."""
    # Half of the numbers between 0 and 1 stand for negative values.
    place = (2.0 * drawn) % 1.0 if has_signs else drawn
    values = usual * torch.pow(most, place.double())
    if has_powers:
        values = torch.exp2(values.log2().round())
    if has_signs:
        values = torch.where(drawn < 0.5, -values, values)
    return values.to(old.dtype).expand(old.shape)
