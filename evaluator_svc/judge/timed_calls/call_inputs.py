"""The values that inputs and weights have in each timed call: never those of another call.

Before every call they are changed in place, by bits that a key and the number of the call decide,
and after the last one they are what was drawn: `redraw.hpp` says how. Runners and baselines do so
in the measuring loop; here it is done again for calls that are verified. Floats get other values;
of integers, labels and masks whose order is an accident, elements change places. What a kernel may
rely on stays: structure, range, constants of the task.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import torch

from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PREPARATION_SEED, PreparedWorkload
from evaluator_svc.judge.memory.judge_memory import JudgeMemory
from evaluator_svc.judge.reference.formats import computable
from evaluator_svc.judge.reference.name_table import dtype_name
from evaluator_svc.judge.tensors.structure import structures
from evaluator_svc.judge.tensors.tensor_parts import all_finite
from evaluator_svc.judge.timed_calls.exchangeable import is_exchangeable
from evaluator_svc.messages.measurement import RedrawRows
from kernel_foundry.domain.admission import TensorRole
from kernel_foundry.errors import TaskInvalidError

_TRIAL_KEY: Final = 0x9E37_79B9_7F4A_7C15
"""Of the values that the reference is tried on; no call of a candidate has them."""
_TRIAL_INDEX: Final = 1
_SAMPLE_ELEMENTS: Final = 1 << 16
_HALF: Final = 0.5
"""What frexp gives of every power of two."""
_WHOLE_NUMBERS: Final = {1: "int8", 2: "int16", 4: "int32", 8: "int64"}
"""By bytes of an element: as what it changes its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallValues:
    """Which values the tensors of a set have."""

    key: int
    index: int
    """Number of the call, from 1; 0: as drawn."""
    with_parameters: bool = True
    """Whether parameters change as inputs do."""

    def redrawn(self, which: tuple[str, ...], input_count: int) -> tuple[str, ...]:
        """Return `which` of `redrawn_tensors`, without the parameters where these stay."""
        if self.with_parameters:
            return which
        return (*which[:input_count], *("" for _ in which[input_count:]))


def redrawn_tensors(prepared: PreparedWorkload, memory: JudgeMemory) -> tuple[str, ...]:
    """Return as which type each of `InputSet.pristine` changes from call to call; "": it stays.

    Those of floating point that nothing binds get other values. Elements of other inputs change
    places where nothing binds any of these: they may belong together. On what comes of it the
    reference gives numbers where it did before: asked of all at once, of one after the other where
    it does not.
    """
    if prepared.redrawn is None:
        prepared.redrawn = _redrawn_tensors(prepared, memory)
    return prepared.redrawn


def in_a_call(prepared: PreparedWorkload, seed: int, memory: JudgeMemory) -> InputSet:
    """Return a set as it may be in a timed call, on values that no candidate has."""
    which, own_inputs = redrawn_tensors(prepared, memory), prepared.own_inputs
    drawn = prepared.input_set(seed)
    own = (*own_inputs, *(True for _ in drawn.state))
    values = CallValues(key=_TRIAL_KEY, index=_TRIAL_INDEX)
    return with_call_values(drawn, which, values, memory, own)


def with_call_values(
    input_set: InputSet,
    which: Sequence[str],
    values: CallValues,
    memory: JudgeMemory,
    own: Sequence[bool] = (),
) -> InputSet:
    """Return `input_set` with the values of a call.

    Args:
        input_set: As drawn.
        which: Of `redrawn_tensors`.
        values: Of which call.
        memory: Where they lie.
        own: Tensors that may be changed where they lie; others are copied. Empty: none may.
    """
    tensors = list(input_set.pristine)
    for number, dtype in enumerate(which):
        if dtype:
            is_own = bool(own) and own[number] and tensors[number].is_contiguous()
            tensors[number] = tensors[number] if is_own else _copy(tensors[number])
            change(tensors[number], number, dtype, values, memory)
    count = len(input_set.inputs)
    state = dict(zip(input_set.state, tensors[count:], strict=True))
    return input_set.with_values(tensors[:count], state)


def change(
    tensor: torch.Tensor,
    number: int,
    dtype: str,
    values: CallValues,
    memory: JudgeMemory,
    *,
    before: int = 0,
) -> None:
    """Give a contiguous tensor the values of a call, in place.

    `dtype` is what `redrawn_tensors` says of it, `before` the index that it has.
    """
    memory.redraw(
        tensor.data_ptr(),
        dtype=dtype,
        size_bytes=tensor.numel() * tensor.element_size(),
        key=values.key,
        number=number,
        undo_index=before,
        apply_index=values.index,
    )


def redraw_rows(sets: Sequence[InputSet], which: Sequence[str], key: int) -> RedrawRows | None:
    """Return what the measuring loop is to redraw of `sets`; None where nothing is."""
    places = [_places(input_set) for input_set in sets]
    chosen = [
        number
        for number, dtype in enumerate(which)
        if dtype and all(_is_alone(number, of_set) for of_set in places)
    ]
    if not chosen or not key:
        return None
    tensors = [sets[0].pristine[number] for number in chosen]
    return (
        key,
        [
            (which[number], tensor.numel() * tensor.element_size(), number)
            for number, tensor in zip(chosen, tensors, strict=True)
        ],
        [[of_set[number][0] for number in chosen] for of_set in places],
    )


def _places(input_set: InputSet) -> list[tuple[int, int]]:
    """Return start and end of each tensor."""
    starts = [tensor.data_ptr() for tensor in input_set.pristine]
    sizes = [tensor.numel() * tensor.element_size() for tensor in input_set.pristine]
    return [(start, start + size) for start, size in zip(starts, sizes, strict=True)]


def _is_alone(number: int, places: Sequence[tuple[int, int]]) -> bool:
    """Return whether no other tensor of a set lies in the same bytes, as views of one may."""
    start, end = places[number]
    return not any(
        start < other_end and other_start < end
        for other, (other_start, other_end) in enumerate(places)
        if other != number
    )


def _wanted(prepared: PreparedWorkload, drawn: InputSet) -> tuple[str, ...]:
    """Return as `redrawn_tensors`, whatever the reference makes of it."""
    constants = prepared.task.constants
    fixed = (*(False for _ in drawn.inputs), *(rule.is_fixed for rule in prepared.rules))
    names = [t.name for t in prepared.tensors if t.role is not TensorRole.OUTPUT]
    free = [
        tensor.numel() > 0 and not is_fixed and name not in constants
        for tensor, is_fixed, name in zip(drawn.pristine, fixed, names, strict=True)
    ]
    has_values = [
        is_free and tensor.is_floating_point() and not structures(tensor) and _has_mantissas(tensor)
        for tensor, is_free in zip(drawn.pristine, free, strict=True)
    ]
    whole = [
        number
        for number, tensor in enumerate(drawn.inputs)
        if free[number]
        and not has_values[number]
        and (not tensor.is_floating_point() or structures(tensor) <= {"labels"})
    ]
    has_order = not all(is_exchangeable(drawn.inputs[number]) for number in whole)
    return tuple(
        dtype_name(tensor.dtype) if has_values[number]
        else _WHOLE_NUMBERS[tensor.element_size()] if number in whole and not has_order
        else ""
        for number, tensor in enumerate(drawn.pristine)
    )  # fmt: skip


def _redrawn_tensors(prepared: PreparedWorkload, memory: JudgeMemory) -> tuple[str, ...]:
    own_inputs = prepared.own_inputs  # before: it draws sets of its own
    drawn = prepared.input_set(PREPARATION_SEED)
    wanted = _wanted(prepared, drawn)
    if not any(wanted):
        return wanted
    own = (*own_inputs, *(True for _ in drawn.state))
    copied = [t if is_own else _copy(t) for t, is_own in zip(drawn.pristine, own, strict=True)]
    count = len(drawn.inputs)

    def finite() -> list[bool]:
        """Return for each output whether all of it are numbers, with the values of now."""
        state = dict(zip(drawn.state, copied[count:], strict=True))
        now = drawn.with_values(copied[:count], state)
        if not now.is_taken():
            return [False]
        return [all_finite(output) for output in now.expected()]

    values = CallValues(key=_TRIAL_KEY, index=_TRIAL_INDEX)
    as_drawn = CallValues(key=_TRIAL_KEY, index=0)

    def is_defined(which: Sequence[str]) -> bool:
        # In place, and back: a large workload leaves no room for copies.
        chosen = [(number, dtype) for number, dtype in enumerate(which) if dtype]
        for number, dtype in chosen:
            change(copied[number], number, dtype, values, memory)
        try:
            now = finite()
            return len(now) == len(before) and all(
                is_now or not was for is_now, was in zip(now, before, strict=True)
            )
        except TaskInvalidError:
            return False
        finally:
            for number, dtype in chosen:
                change(copied[number], number, dtype, as_drawn, memory, before=values.index)

    before = finite()
    return _largest(wanted, is_defined)


def _largest(
    wanted: tuple[str, ...], is_defined: Callable[[Sequence[str]], bool]
) -> tuple[str, ...]:
    """Return `wanted` without what the reference is not defined on."""
    if is_defined(wanted):
        return wanted
    nothing = ("",) * len(wanted)
    alone = tuple(
        dtype if dtype and is_defined((*nothing[:number], dtype, *nothing[number + 1 :])) else ""
        for number, dtype in enumerate(wanted)
    )
    return alone if is_defined(alone) else nothing


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.clone(memory_format=torch.contiguous_format)


def _has_mantissas(tensor: torch.Tensor) -> bool:
    """Return whether a tensor, or a sample of it, holds more than zeros and powers of two.

    The values of these never change.
    """
    flat = tensor.reshape(-1)
    sample = flat[:: max(flat.numel() // _SAMPLE_ELEMENTS, 1)]
    mantissa, _ = torch.frexp(computable(sample).float().abs())
    return bool(((mantissa != 0) & (mantissa != _HALF)).any())
