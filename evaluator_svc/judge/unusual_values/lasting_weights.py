"""Parameters by which a reference remembers: what came in early still shows in late outputs.

With ordinary parameters a recurrence forgets within some tens of steps, and a kernel that begins
anew now and then, or late, would pass. Which parameters keep a state is found out by trial: one
part of one parameter is replaced, the beginning of an input changes, and late outputs are looked
at. Nothing is to be found where they follow anyway, or where they follow from no beginning at all.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Final

import torch

from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PREPARATION_SEED, PreparedWorkload
from evaluator_svc.judge.inputs.weight_part import WeightPart, parts_of_matrix, parts_of_vector
from evaluator_svc.judge.tensors.structure import is_structured
from kernel_foundry.errors import TaskInvalidError

_LEAST_LENGTH: Final = 48
"""Fewest places of an axis that anything is forgotten along."""
_SHARE: Final = 8
"""One place in so many is early, and as many are late."""
_REACH: Final = 16
"""Places behind the early ones where they show at least in float64: a window ends sooner."""
_VISIBLE: Final = 1e-2
"""Least difference of an element that counts as visible, in units of the root mean square."""
_VISIBLE_SHARE: Final = 1 / 16
"""Share of the late elements in which the difference has to be visible."""
_MOST_ERROR: Final = 1e-4
"""Largest rounding error of the reference in any of them, in the same units."""
_MOST_TRIALS: Final = 32
"""Parts that are tried."""
_FORMATS: Final = (torch.float32, torch.float64)
"""Of parameters that are tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Begun:
    """Inputs of which one begins otherwise."""

    inputs: tuple[torch.Tensor, ...]
    length: int
    """Of the axis along which it does."""


def with_lasting_weights(prepared: PreparedWorkload, input_set: InputSet) -> InputSet:
    """Return a set with parameters by which the reference remembers; itself where none are."""
    parts, state = prepared.once(_found), dict(input_set.state)
    if not parts:
        return input_set
    for part in parts:
        state[part.path] = part.changed(state[part.path])
    return input_set.with_values(input_set.inputs, state)


def _found(prepared: PreparedWorkload) -> tuple[WeightPart, ...]:
    """Return what is to be changed, one part or nothing; tried on inputs that no candidate sees."""
    if not (
        prepared.traits.iterates or prepared.traits.combines_many or prepared.traits.has_recurrence
    ):
        return ()
    ordinary = prepared.shared_set(PREPARATION_SEED)
    exact = cache(partial(ordinary.run, dtype=torch.float64))
    try:
        several = _begun_otherwise(prepared, ordinary)
        begun = [b for b in several if _is_forgotten(ordinary, b, exact)]
        for part in itertools.islice(_parts(prepared), _MOST_TRIALS if begun else 0):
            state = {**ordinary.state, part.path: part.changed(ordinary.state[part.path])}
            changed = ordinary.with_values(ordinary.inputs, state)
            if any(_shows(changed, b) for b in begun) and _is_exact(changed):
                return (part,)
    except TaskInvalidError:
        return ()
    return ()


def _parts(prepared: PreparedWorkload) -> Iterator[WeightPart]:
    """Yield what may keep a state: of matrices first, those of few blocks before others."""
    free = [rule for rule in prepared.rules if rule.is_free and rule.base.dtype in _FORMATS]
    blocks = [tuple(parts_of_matrix(rule.path, rule.base)) for rule in free]
    for parts in sorted(blocks, key=len):
        yield from parts
    for rule in free:
        yield from parts_of_vector(rule.path, rule.base)


def _begun_otherwise(prepared: PreparedWorkload, ordinary: InputSet) -> Iterator[_Begun]:
    """Yield inputs of which one begins as another draw does, along each of its long axes."""
    other = prepared.shared_set(PREPARATION_SEED + 1)
    for index, (old, new) in enumerate(zip(ordinary.inputs, other.inputs, strict=True)):
        if prepared.fixed_inputs[index] or old.shape != new.shape or is_structured(old):
            continue
        for axis, length in enumerate(old.shape):
            if length >= _LEAST_LENGTH:
                inputs = list(ordinary.inputs)
                inputs[index] = old.clone()
                inputs[index].narrow(axis, 0, length // _SHARE).copy_(
                    new.narrow(axis, 0, length // _SHARE)
                )
                yield _Begun(inputs=tuple(inputs), length=length)


def _is_forgotten(
    ordinary: InputSet, begun: _Begun, exact: Callable[[], Sequence[torch.Tensor]]
) -> bool:
    """Return whether the beginning shows soon after it, if only in float64, and late not at all.

    `exact` gives the outputs of `ordinary` in float64.
    """
    if _shows(ordinary, begun):
        return False
    near = begun.length // _SHARE + _REACH
    pairs = zip(exact(), ordinary.run(dtype=torch.float64, inputs=begun.inputs), strict=True)
    places = [(_axis(one, begun.length), one, two) for one, two in pairs]
    along = [(axis, one, two) for axis, one, two in places if axis is not None]
    # Where no output has that axis, as a last state has not, nothing can be said.
    return not along or any(
        not torch.equal(one.narrow(axis, near, 1), two.narrow(axis, near, 1))
        for axis, one, two in along
    )


def _shows(input_set: InputSet, begun: _Begun) -> bool:
    """Return whether late outputs follow from the beginning, in the reference's own formats."""
    pairs = zip(input_set.own(), input_set.run(inputs=begun.inputs), strict=True)
    return any(_differs(one, two, begun.length) for one, two in pairs)


def _differs(one: torch.Tensor, two: torch.Tensor, length: int) -> bool:
    if not one.is_floating_point() or not one.numel():
        return False
    scale = float(one.double().square().mean().sqrt())
    axis, late = _axis(one, length), length // _SHARE
    if axis is not None:
        one, two = (t.narrow(axis, length - late, late) for t in (one, two))
    is_other = (one - two).abs() > _VISIBLE * scale
    return math.isfinite(scale) and float(is_other.float().mean()) >= _VISIBLE_SHARE


def _axis(output: torch.Tensor, length: int) -> int | None:
    return next((axis for axis, size in enumerate(output.shape) if size == length), None)


def _is_exact(changed: InputSet) -> bool:
    """Return whether rounding, the reference's own and that of its inputs, moves outputs little."""
    exact = changed.run(dtype=torch.float64)
    moved = [
        t * (1.0 + torch.finfo(t.dtype).eps) if t.is_floating_point() else t for t in changed.inputs
    ]
    for outputs in (changed.own(), changed.run(inputs=moved)):
        for own, right in zip(outputs, exact, strict=True):
            if not own.is_floating_point() or not own.numel():
                continue
            scale = right.double().square().mean().sqrt()
            if not bool((own - right).abs().max() <= _MOST_ERROR * scale):
                return False
    return True
