"""Parameters of other signs and sizes, some zero: whatever they start as, they may become anything.

But for those that are frozen, buffers, and constants of the task.
"""

from typing import Final

import torch

from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PREPARATION_SEED, PreparedWorkload
from evaluator_svc.judge.tensors.tensor_parts import generator_of, root_mean_square
from evaluator_svc.judge.unusual_values.changed_values import has_few, outliers, weights
from evaluator_svc.judge.unusual_values.defined_results import is_defined, is_well_defined
from kernel_foundry.domain.admission import Distribution

_COLUMN_IN_RMS: Final = {torch.float32: 256.0, torch.float64: 256.0}
"""How far below zero a column is: its terms are larger than all others of a sum together."""


def with_unusual_weights(
    prepared: PreparedWorkload, input_set: InputSet, distribution: Distribution
) -> InputSet:
    """Return a set with such parameters; itself where none is free.

    Outliers of matrices are a column of one sign under every second seed, so that all results of a
    row may be below zero: of parameters drawn one by one some result is above it.
    """
    if not any(rule.is_free for rule in prepared.rules):
        return input_set
    if distribution is Distribution.WEIGHT_OUTLIERS and input_set.seed % 2 == 0:
        matrices = prepared.once(_matrices)
        if matrices:
            return _with_columns(input_set, matrices)
    signs, zeros = prepared.once(_signs_and_zeros)
    return _with_weights(prepared, input_set, distribution, signs=signs, zeros=zeros)


def _signs_and_zeros(prepared: PreparedWorkload) -> tuple[bool, bool]:
    """Return whether the reference takes other signs, and zeros beside them."""
    ordinary, usual = prepared.shared_set(PREPARATION_SEED), Distribution.USUAL_WEIGHTS
    for zeros in (True, False):
        changed = _with_weights(prepared, ordinary, usual, signs=True, zeros=zeros)
        if is_defined(changed):
            return True, zeros
    return False, False


def _with_weights(
    prepared: PreparedWorkload,
    input_set: InputSet,
    distribution: Distribution,
    *,
    signs: bool,
    zeros: bool,
) -> InputSet:
    state, drawn = dict(input_set.state), dict[str, torch.Tensor]()
    for rule in prepared.rules:
        if rule.is_free:
            any_sign = signs and not rule.keeps_sign
            tensor = state[rule.path]
            if distribution is Distribution.WEIGHT_OUTLIERS and has_few(tensor):
                drawn[rule.path] = weights(tensor, is_large=True, any_sign=False)
            elif distribution is Distribution.WEIGHT_OUTLIERS:
                state[rule.path] = outliers(tensor, any_sign=any_sign)
            elif any_sign or distribution is Distribution.WEIGHTS:
                is_large = distribution is Distribution.WEIGHTS
                drawn[rule.path] = weights(
                    tensor, is_large=is_large, any_sign=any_sign, has_zeros=any_sign and zeros
                )
    state |= prepared.telling_state(drawn, input_set.seed)
    return input_set.with_values(input_set.inputs, state)


def _matrices(prepared: PreparedWorkload) -> frozenset[str]:
    """Return the parameters that may have such a column, by path: all that there are, or none."""
    ordinary = prepared.shared_set(PREPARATION_SEED)
    matrices = frozenset(
        rule.path
        for rule in prepared.rules
        if rule.is_free and not rule.keeps_sign and _is_matrix(rule.base)
    )
    columns = _with_columns(ordinary, matrices)
    return matrices if matrices and is_well_defined(columns) else frozenset()


def _is_matrix(tensor: torch.Tensor) -> bool:
    return tensor.dtype in _COLUMN_IN_RMS and tensor.ndim > 1 and len(tensor) > 1


def _with_columns(input_set: InputSet, matrices: frozenset[str]) -> InputSet:
    state = dict(input_set.state)
    for path in matrices:
        tensor = state[path]
        columns = tensor.flatten(1).clone()
        place = torch.randint(
            columns.shape[1], (1,), generator=generator_of(tensor), device=tensor.device
        )
        size = _COLUMN_IN_RMS[tensor.dtype] * root_mean_square(tensor)
        columns[:, place] = -columns[:, place].abs() - size
        state[path] = columns.reshape(tensor.shape)
    return input_set.with_values(input_set.inputs, state) if matrices else input_set
