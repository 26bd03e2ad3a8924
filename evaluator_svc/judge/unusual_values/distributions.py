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

from evaluator_svc.judge.inputs.defined_values import ExtremeRows, FarRows
from evaluator_svc.judge.inputs.free_inputs import with_free_inputs
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PREPARATION_SEED, PreparedWorkload
from evaluator_svc.judge.tensors.equal_parts import equal_parts, one_part, twice
from evaluator_svc.judge.tensors.structure import keeps_structure
from evaluator_svc.judge.unusual_values.alike_inputs import with_alike_inputs
from evaluator_svc.judge.unusual_values.beside_values import beside_both, beside_zero
from evaluator_svc.judge.unusual_values.bounds import with_bounds
from evaluator_svc.judge.unusual_values.changed_matrices import cycles, is_graph
from evaluator_svc.judge.unusual_values.changed_values import (
    CHANGES,
    few,
    large,
    outliers,
    sparse_with_signs,
)
from evaluator_svc.judge.unusual_values.close_inputs import with_close_inputs
from evaluator_svc.judge.unusual_values.defined_results import is_defined, outputs_without_nan
from evaluator_svc.judge.unusual_values.dense_inputs import with_dense_inputs
from evaluator_svc.judge.unusual_values.extreme_rows import extreme_rows, with_extreme_rows
from evaluator_svc.judge.unusual_values.far_rows import far_rows, with_far_rows
from evaluator_svc.judge.unusual_values.far_sizes import with_far_sizes
from evaluator_svc.judge.unusual_values.kept_digits import kept_sides
from evaluator_svc.judge.unusual_values.lasting_weights import with_lasting_weights
from evaluator_svc.judge.unusual_values.level_slices import with_level_slices
from evaluator_svc.judge.unusual_values.marks import with_marks
from evaluator_svc.judge.unusual_values.ordered_rows import with_ordered_rows
from evaluator_svc.judge.unusual_values.small_slices import with_small_slices
from evaluator_svc.judge.unusual_values.unusual_integers import with_unusual_integers
from evaluator_svc.judge.unusual_values.unusual_places import with_unusual_places
from evaluator_svc.judge.unusual_values.unusual_weights import with_unusual_weights
from evaluator_svc.judge.unusual_values.whole_exponents import (
    signs_beside_whole,
    with_signs_beside_whole,
)
from evaluator_svc.messages.distribution_traits import Trait, has
from kernel_foundry.domain.admission import Distribution

_OF_MANY: Final = (Distribution.NEAR_ONE, Distribution.NEAR_ZERO)
"""Of references that multiply or add up many elements."""
_FAR_SIZES: Final = (Distribution.HUGE, Distribution.TINY)

_Change = Callable[[torch.Tensor], torch.Tensor]


def with_distribution(
    prepared: PreparedWorkload, input_set: InputSet, distribution: Distribution
) -> InputSet:
    """Return a copy of `input_set`, a draw of `prepared`, that is of `distribution`."""
    if distribution in _OF_THE_SET:
        return _OF_THE_SET[distribution](prepared, input_set)
    if has(distribution, Trait.OF_PARAMETERS):
        return with_unusual_weights(prepared, input_set, distribution)
    if distribution is Distribution.BLOCKS and not prepared.traits.iterates:
        return input_set
    if distribution in _OF_MANY and not prepared.traits.combines_many:
        return input_set
    if distribution is Distribution.BESIDE_ONE and not prepared.traits.takes_logarithms:
        return _with_small_elements(prepared, input_set)
    if distribution is Distribution.MAGNITUDES and prepared.traits.multiplies_many:
        return input_set  # the product of some overflows, where that of all up to them vanished
    if distribution is Distribution.ABSOLUTE:
        pair = prepared.once(signs_beside_whole)
        if pair is not None:
            return with_signs_beside_whole(prepared, input_set, pair)
    if distribution in _FAR_SIZES:
        return with_far_sizes(prepared, input_set, distribution)
    change = _change_of(prepared, distribution, input_set.seed)
    kept = _kept(prepared, input_set, distribution)
    if distribution is Distribution.FEW:
        return _one_changed(input_set, change, kept)
    if prepared.traits.may_overflow and not has(distribution, Trait.REPORTED):
        alone = prepared.once(_changed_alone, distribution)
        if alone:
            chosen = alone[input_set.seed % len(alone)]
            kept = [is_kept or index != chosen for index, is_kept in enumerate(kept)]
    return input_set.with_values(_changed(input_set, change, kept), input_set.state)


def _kept(
    prepared: PreparedWorkload, input_set: InputSet, distribution: Distribution
) -> list[bool]:
    """Return which inputs stay."""
    names = input_set.arguments.names
    kept = [name in prepared.task.constants for name in names]
    if has(distribution, Trait.BY_ELEMENT):
        # Tables of sines and the like repeat themselves in some pattern, which single places break.
        kept = [a or b for a, b in zip(kept, prepared.fixed_inputs, strict=True)]
    return kept


def _changed(input_set: InputSet, change: _Change, kept: Sequence[bool]) -> list[torch.Tensor]:
    return [
        tensor if is_kept else _where_free(tensor, change)
        for tensor, is_kept in zip(input_set.inputs, kept, strict=True)
    ]


def _with_columns(prepared: PreparedWorkload, input_set: InputSet) -> InputSet:
    extreme, far = prepared.once(_columns)
    return with_far_rows(prepared, with_extreme_rows(prepared, input_set, extreme), far)


def _columns(prepared: PreparedWorkload) -> tuple[ExtremeRows, FarRows]:
    extreme, far = extreme_rows(prepared, of_columns=True), far_rows(prepared, of_columns=True)
    ordinary = prepared.shared_set(PREPARATION_SEED)
    masks = with_extreme_rows(prepared, ordinary, extreme)
    alone, together = (with_far_rows(prepared, some, far) for some in (ordinary, masks))
    is_taken = outputs_without_nan(alone) <= outputs_without_nan(together)
    return extreme, far if is_taken else FarRows(of_columns=True)


_OF_THE_SET: Final = {
    Distribution.LARGE_INTEGERS: with_unusual_integers,
    Distribution.ALIKE: with_alike_inputs,
    Distribution.CLOSE: with_close_inputs,
    Distribution.DENSE: with_dense_inputs,
    Distribution.EXTREMES: lambda prepared, input_set: with_extreme_rows(
        prepared, input_set, prepared.once(extreme_rows)
    ),
    Distribution.FAR: lambda prepared, input_set: with_far_rows(
        prepared, input_set, prepared.once(far_rows)
    ),
    Distribution.PLACES: with_unusual_places,
    Distribution.LEVEL: with_level_slices,
    Distribution.SMALL: with_small_slices,
    Distribution.BOUNDS: lambda prepared, input_set: with_marks(
        prepared, with_bounds(prepared, input_set)
    ),
    Distribution.ORDERED: with_ordered_rows,
    Distribution.COLUMNS: _with_columns,
    Distribution.LASTING_WEIGHTS: with_lasting_weights,
}
"""Distributions that need more than one tensor, or to know what the reference takes it for."""


def _change_of(prepared: PreparedWorkload, distribution: Distribution, seed: int) -> _Change:
    if distribution is Distribution.LARGE:
        return partial(large, sign=prepared.once(_large_sign))
    if distribution is Distribution.OUTLIERS:
        return partial(outliers, any_sign=prepared.once(_large_sign) < 0)
    if distribution is Distribution.BESIDE_ONE and prepared.once(kept_sides):
        return partial(beside_both, turn=seed % 2)
    uses = prepared.float_uses if distribution is Distribution.SPARSE else None
    if uses is not None and uses.asks_signs:
        return sparse_with_signs
    return few if distribution is Distribution.FEW else CHANGES[distribution]


def _with_small_elements(prepared: PreparedWorkload, input_set: InputSet) -> InputSet:
    sides = prepared.once(kept_sides)

    def small(index: int, tensor: torch.Tensor) -> torch.Tensor:
        if index not in sides:
            return tensor
        return _where_free(tensor, partial(beside_zero, signs=sides[index]))

    return with_free_inputs(prepared, input_set, small) if sides else input_set


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


def _changed_alone(prepared: PreparedWorkload, distribution: Distribution) -> tuple[int, ...]:
    """Return the inputs of which each changes alone, where they cannot change together.

    One factor that overflows would leave nothing to hold anybody to. Empty where the reference
    gives numbers when all change, and where it gives none when one does.
    """
    ordinary = prepared.shared_set(PREPARATION_SEED)
    change = _change_of(prepared, distribution, ordinary.seed)
    new = _changed(ordinary, change, _kept(prepared, ordinary, distribution))
    changed = [i for i, (a, b) in enumerate(zip(new, ordinary.inputs, strict=True)) if a is not b]

    def is_taken(indices: Sequence[int]) -> bool:
        inputs = [new[i] if i in indices else old for i, old in enumerate(ordinary.inputs)]
        return is_defined(ordinary.with_values(inputs, ordinary.state))

    is_together = len(changed) < 2 or is_taken(changed)
    return () if is_together else tuple(i for i in changed if is_taken([i]))


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
    return -1.0 if is_defined(turned) else 1.0
