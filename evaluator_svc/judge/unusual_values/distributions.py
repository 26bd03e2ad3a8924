"""Inputs of unusual values, which show what ordinary ones hide: overflow, cancellation, shortcuts.

Inputs are changed only where they keep their structure: of floating point, and integers by a
distribution of their own where they stand for no place, length or class. Parameters have
distributions of their own, on ordinary inputs: whatever they start as, they may become anything,
but for those that are frozen, buffers, and constants of the task. On which of them candidates are
tried is in `admission/value_ranges.py`.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import torch

from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PREPARATION_SEED, PreparedWorkload
from evaluator_svc.judge.reference.formats import FLOAT8
from evaluator_svc.judge.tensors.equal_parts import equal_parts, one_part, twice
from evaluator_svc.judge.tensors.structure import keeps_structure
from evaluator_svc.judge.tensors.tensor_parts import all_finite, none_is_nan, rows_of
from evaluator_svc.judge.unusual_values.alike_inputs import with_alike_inputs
from evaluator_svc.judge.unusual_values.beside_values import beside_both, beside_zero
from evaluator_svc.judge.unusual_values.bounds import with_bounds
from evaluator_svc.judge.unusual_values.changed_matrices import cycles, is_graph
from evaluator_svc.judge.unusual_values.changed_values import (
    CHANGES,
    few,
    has_few,
    large,
    outliers,
    sparse_with_signs,
    weights,
)
from evaluator_svc.judge.unusual_values.close_inputs import with_close_inputs
from evaluator_svc.judge.unusual_values.dense_inputs import with_dense_inputs
from evaluator_svc.judge.unusual_values.extreme_rows import extreme_rows, with_extreme_rows
from evaluator_svc.judge.unusual_values.far_rows import defined_inputs, far_rows, with_far_rows
from evaluator_svc.judge.unusual_values.far_sizes import with_far_sizes
from evaluator_svc.judge.unusual_values.lasting_weights import with_lasting_weights
from evaluator_svc.judge.unusual_values.level_slices import has_levels, with_level_slices
from evaluator_svc.judge.unusual_values.marks import find_marks, with_marks
from evaluator_svc.judge.unusual_values.ordered_rows import with_ordered_rows
from evaluator_svc.judge.unusual_values.small_slices import small_slices, with_small_slices
from evaluator_svc.judge.unusual_values.unusual_integers import (
    find_integers,
    with_unusual_integers,
)
from evaluator_svc.judge.unusual_values.unusual_places import (
    find_places,
    may_be_places,
    with_unusual_places,
)
from evaluator_svc.messages.distribution_traits import Trait, has
from kernel_foundry.domain.admission import Distribution
from kernel_foundry.errors import TaskInvalidError

_SIGNED: Final = (Distribution.LARGE, Distribution.OUTLIERS)
"""They ask which signs the reference is defined on."""
_OF_MANY: Final = (Distribution.NEAR_ONE, Distribution.NEAR_ZERO)
"""Of references that multiply or add up many elements."""
_FAR_SIZES: Final = (Distribution.HUGE, Distribution.TINY)

_UNITS: Final = 4
"""Units in the last place that large values are moved by…"""
_NEAR: Final = 2.0**-14
"""…what that may move, of the largest result…"""
_NEAR_16_BIT: Final = 2.0**-4
"""…and in 16 bits, which is less than what an overflow does."""


def with_distribution(
    prepared: PreparedWorkload, input_set: InputSet, distribution: Distribution
) -> InputSet:
    """Return a copy of `input_set`, a draw of `prepared`, that is of `distribution`."""
    if distribution is Distribution.LASTING_WEIGHTS:
        return with_lasting_weights(prepared, input_set)
    if has(distribution, Trait.OF_PARAMETERS):
        return _of_weights(prepared, input_set, distribution)
    if distribution is Distribution.BLOCKS and not prepared.traits.iterates:
        return input_set
    if distribution in _OF_MANY and not prepared.traits.combines_many:
        return input_set
    if distribution is Distribution.BESIDE_ONE and not (
        prepared.traits.takes_logarithms or prepared.traits.keeps_small
    ):
        return input_set
    if distribution is Distribution.MAGNITUDES and prepared.traits.multiplies_many:
        return input_set  # the product of some overflows, where that of all up to them vanished
    if distribution in _FAR_SIZES:
        return with_far_sizes(prepared, input_set, distribution)
    if distribution in _OF_THE_SET:
        return _OF_THE_SET[distribution](prepared, input_set)
    if distribution in _SIGNED and prepared.large_sign is None:
        prepared.large_sign = _large_sign(prepared)
    kept = [name in prepared.task.constants for name in input_set.arguments.names]
    if has(distribution, Trait.BY_ELEMENT):
        # Tables of sines and the like repeat themselves in some pattern, which single places break.
        kept = [a or b for a, b in zip(kept, prepared.fixed_inputs, strict=True)]
    change = _change_of(distribution, prepared.large_sign or 1.0)
    if distribution is Distribution.BESIDE_ONE and prepared.traits.keeps_small:
        both = partial(beside_both, turn=input_set.seed % 2)
        change = both if prepared.traits.takes_logarithms else beside_zero
    uses = prepared.float_uses if distribution is Distribution.SPARSE else None
    if uses is not None and uses.asks_signs:
        change = sparse_with_signs
    if distribution is Distribution.FEW:
        return _one_changed(input_set, change, kept)
    if prepared.traits.may_overflow and not has(distribution, Trait.REPORTED):
        alone = _changed_alone(prepared, distribution, change, kept)
        if alone:
            chosen = alone[input_set.seed % len(alone)]
            kept = [is_kept or index != chosen for index, is_kept in enumerate(kept)]
    inputs = [
        tensor if is_kept else _where_free(tensor, change)
        for tensor, is_kept in zip(input_set.inputs, kept, strict=True)
    ]
    return input_set.with_values(inputs, input_set.state)


def _with_integers(prepared: PreparedWorkload, input_set: InputSet) -> InputSet:
    if prepared.any_integer_sign is None:
        find_integers(prepared, partial(_is_defined, prepared))
    return with_unusual_integers(prepared, input_set)


def _with_alike(prepared: PreparedWorkload, input_set: InputSet) -> InputSet:
    return with_alike_inputs(prepared, input_set, partial(_is_defined, prepared))


def _with_extremes(prepared: PreparedWorkload, input_set: InputSet) -> InputSet:
    if prepared.defined.extreme_rows is None:
        found = extreme_rows(prepared, partial(_is_defined, prepared))
        prepared.defined.extreme_rows = found
    return with_extreme_rows(prepared, input_set, prepared.defined.extreme_rows)


def _with_far_rows(prepared: PreparedWorkload, input_set: InputSet) -> InputSet:
    if prepared.defined.far_rows is None:
        prepared.defined.far_rows = far_rows(
            prepared,
            partial(_is_defined, prepared),
            partial(_is_well_defined, prepared),
            partial(_has_no_nan, prepared),
        )
    return with_far_rows(prepared, input_set, prepared.defined.far_rows)


def _with_places(prepared: PreparedWorkload, input_set: InputSet) -> InputSet:
    if not any(map(may_be_places, input_set.inputs)):
        return input_set
    if prepared.defined.places is None:
        prepared.defined.places = find_places(prepared, partial(_is_defined, prepared))
    return with_unusual_places(prepared, input_set, prepared.defined.places)


def _with_bounds(prepared: PreparedWorkload, input_set: InputSet) -> InputSet:
    result = with_bounds(prepared, input_set)
    if not any(map(may_be_places, input_set.inputs)):
        return result
    if prepared.defined.marks is None:
        prepared.defined.marks = find_marks(prepared, partial(_is_defined, prepared))
    return with_marks(prepared, result, prepared.defined.marks)


def _with_level_slices(prepared: PreparedWorkload, input_set: InputSet) -> InputSet:
    if not prepared.traits.divides_sums:
        return input_set
    if prepared.defined.level_inputs is None:
        ordinary = prepared.shared_set(PREPARATION_SEED)

        def is_taken(chosen: frozenset[int]) -> bool:
            # Where nothing is rounded: else a number may be what rounding left of none.
            changed = with_level_slices(prepared, ordinary, chosen, has_powers=True)
            return changed is not ordinary and _is_defined(prepared, changed)

        floats = (i for i, tensor in enumerate(ordinary.inputs) if has_levels(tensor))
        prepared.defined.level_inputs = defined_inputs(floats, is_taken)
    return with_level_slices(prepared, input_set, prepared.defined.level_inputs)


def _with_small_slices(prepared: PreparedWorkload, input_set: InputSet) -> InputSet:
    if not prepared.traits.divides:
        return input_set
    if prepared.defined.small_slices is None:
        prepared.defined.small_slices = small_slices(prepared)
    return with_small_slices(prepared, input_set, prepared.defined.small_slices)


_OF_THE_SET: Final = {
    Distribution.LARGE_INTEGERS: _with_integers,
    Distribution.ALIKE: _with_alike,
    Distribution.CLOSE: with_close_inputs,
    Distribution.DENSE: with_dense_inputs,
    Distribution.EXTREMES: _with_extremes,
    Distribution.FAR: _with_far_rows,
    Distribution.PLACES: _with_places,
    Distribution.LEVEL: _with_level_slices,
    Distribution.SMALL: _with_small_slices,
    Distribution.BOUNDS: _with_bounds,
    Distribution.ORDERED: with_ordered_rows,
}
"""Distributions that need more than one tensor, or to know what the reference takes it for."""


def _of_weights(
    prepared: PreparedWorkload, input_set: InputSet, distribution: Distribution
) -> InputSet:
    if not any(rule.is_free for rule in prepared.rules):
        return input_set
    if prepared.any_weight_sign is None:
        ordinary = prepared.shared_set(PREPARATION_SEED)
        # With other signs and with zeros, with other signs alone, or with neither.
        for signs, zeros in ((True, True), (True, False)):
            prepared.any_weight_sign, prepared.defined.zero_weights = signs, zeros
            usual = _of_weights(prepared, ordinary, Distribution.USUAL_WEIGHTS)
            if _is_defined(prepared, usual):
                break
        else:
            prepared.any_weight_sign = False
    state, drawn = dict(input_set.state), dict[str, torch.Tensor]()
    for rule in prepared.rules:
        if rule.is_free:
            any_sign = prepared.any_weight_sign and not rule.keeps_sign
            tensor = state[rule.path]
            if distribution is Distribution.WEIGHT_OUTLIERS and has_few(tensor):
                drawn[rule.path] = weights(tensor, is_large=True, any_sign=False)
            elif distribution is Distribution.WEIGHT_OUTLIERS:
                state[rule.path] = outliers(tensor, any_sign=any_sign)
            elif any_sign or distribution is Distribution.WEIGHTS:
                is_large = distribution is Distribution.WEIGHTS
                has_zeros = any_sign and prepared.defined.zero_weights
                drawn[rule.path] = weights(
                    tensor, is_large=is_large, any_sign=any_sign, has_zeros=has_zeros
                )
    state |= prepared.telling_state(drawn, input_set.seed)
    return input_set.with_values(input_set.inputs, state)


def _is_defined(prepared: PreparedWorkload, changed: InputSet) -> bool:
    """Return whether the reference gives numbers."""
    return _all_are(prepared, changed, all_finite)


def _has_no_nan(prepared: PreparedWorkload, changed: InputSet) -> bool:
    """Return whether the reference gives numbers or infinities."""
    return _all_are(prepared, changed, none_is_nan)


def _all_are(
    prepared: PreparedWorkload, changed: InputSet, is_right: Callable[[torch.Tensor], bool]
) -> bool:
    if not prepared.takes(changed.inputs, changed.state):
        return False
    try:
        return all(map(is_right, changed.expected()))
    except TaskInvalidError:
        return False


def _is_well_defined(prepared: PreparedWorkload, changed: InputSet) -> bool:
    """Return whether the reference gives numbers that neither rounding nor its formats decide.

    A reference that overflows in float16 asks nobody to do better. Differences of large values are
    rounding errors of these: it is asked where the two largest of each row are nearly the same.
    """
    if not _is_defined(prepared, changed):
        return False
    is_narrow = prepared.module.is_narrow
    if is_narrow and not _are_near(changed.run(), changed.expected(), _NEAR_16_BIT):
        return False
    tied = changed.with_inputs([_with_ties(tensor) for tensor in changed.inputs])
    moved = tied.with_inputs([_moved(tensor) for tensor in tied.inputs])
    return _are_near(moved.expected(), tied.expected(), _NEAR_16_BIT if is_narrow else _NEAR)


def _are_near(ones: Sequence[torch.Tensor], others: Sequence[torch.Tensor], share: float) -> bool:
    return all(
        bool((one.double() - other.double()).abs().max() <= share * other.double().abs().max())
        for one, other in zip(ones, others, strict=True)
        if one.is_floating_point() and one.numel()
    )


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


def _change_of(distribution: Distribution, sign: float) -> Callable[[torch.Tensor], torch.Tensor]:
    if distribution is Distribution.LARGE:
        return partial(large, sign=sign)
    if distribution is Distribution.OUTLIERS:
        return partial(outliers, any_sign=sign < 0)
    return few if distribution is Distribution.FEW else CHANGES[distribution]


def _one_changed(
    input_set: InputSet, change: Callable[[torch.Tensor], torch.Tensor], kept: Sequence[bool]
) -> InputSet:
    """Return a set of which the largest input that may be changed is; the seed tells of equals."""
    sizes = [0 if is_kept else t.numel() for t, is_kept in zip(input_set.inputs, kept, strict=True)]
    count, inputs = len(sizes), list(input_set.inputs)
    start = input_set.seed % max(count, 1)
    for place in sorted(range(count), key=lambda p: (-sizes[p], (p - start) % count)):
        old = inputs[place]
        inputs[place] = _where_free(old, change) if sizes[place] else old
        if inputs[place] is not old:
            break
    return input_set.with_values(inputs, input_set.state)


def _changed_alone(
    prepared: PreparedWorkload,
    distribution: Distribution,
    change: Callable[[torch.Tensor], torch.Tensor],
    kept: Sequence[bool],
) -> tuple[int, ...]:
    """Return the inputs of which each changes alone, where they cannot change together.

    One factor that overflows would leave nothing to hold anybody to. Empty where the reference
    gives numbers when all change, and where it gives none when one does.
    """
    known = prepared.defined.changed_alone
    if distribution not in known:
        ordinary = prepared.shared_set(PREPARATION_SEED)
        new = [
            tensor if is_kept else _where_free(tensor, change)
            for tensor, is_kept in zip(ordinary.inputs, kept, strict=True)
        ]
        changed = [
            i for i, (a, b) in enumerate(zip(new, ordinary.inputs, strict=True)) if a is not b
        ]

        def is_taken(indices: Sequence[int]) -> bool:
            inputs = [new[i] if i in indices else old for i, old in enumerate(ordinary.inputs)]
            return _is_defined(prepared, ordinary.with_values(inputs, ordinary.state))

        is_together = len(changed) < 2 or is_taken(changed)
        known[distribution] = () if is_together else tuple(i for i in changed if is_taken([i]))
    return known[distribution]


def _where_free(
    tensor: torch.Tensor, change: Callable[[torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    """Return a tensor changed, or as it is where that would break what a kernel may rely on."""
    if change is CHANGES[Distribution.BLOCKS] and is_graph(tensor):
        return cycles(tensor)
    if not tensor.is_floating_point() or not tensor.numel():
        return tensor
    parts = equal_parts(tensor)
    part = tensor if parts is None else one_part(tensor, parts)
    result = change(part)
    if result is part or not keeps_structure(part, result):
        return tensor
    return result if parts is None else twice(result, parts)


def _large_sign(prepared: PreparedWorkload) -> float:
    """Return -1 where the reference is defined on inputs of the other sign, else 1.

    Inputs that are never negative hide what an operator does: a copy of them is their ReLU. Asked
    of inputs that no candidate sees: of theirs nothing is computed before they ran.
    """
    ordinary = prepared.shared_set(PREPARATION_SEED)
    inputs = [_where_free(tensor, partial(large, sign=-1.0)) for tensor in ordinary.inputs]
    turned = ordinary.with_values(inputs, ordinary.state)
    return -1.0 if _is_defined(prepared, turned) else 1.0
