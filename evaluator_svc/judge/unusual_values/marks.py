"""Integers that a reference compares with: padding, ends, ignored classes, ends of a range.

Draws hold them never, or once in a row: a kernel that leaves the comparison out is right on those.
The numbers are those of the reference's own operators (`reference/input_uses.py`).
"""

from collections.abc import Iterator, Mapping
from typing import Final

import torch

from evaluator_svc.judge.inputs.defined_values import Marks
from evaluator_svc.judge.inputs.free_inputs import free_inputs
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PREPARATION_SEED, PreparedWorkload
from evaluator_svc.judge.tensors.structure import structures
from evaluator_svc.judge.tensors.tensor_parts import generator_of_stream
from evaluator_svc.judge.unusual_values.defined_results import is_defined
from evaluator_svc.judge.unusual_values.unusual_places import may_be_an_accident, may_be_places

_SHARE: Final = 0.125
"""Of the elements of ordinary rows."""
_CLASSES: Final = 3
"""Numbers that lie no further apart are a mask, or signs, which stay."""
_KINDS: Final = 8
_NONE, _WHOLE, _RUN = 0, 1, 2
"""Kinds of rows: without a mark, of one mark, and with one from some place on to the end."""
_STREAM: Final = 0x5BE0_CD19_137E_2179
"""Tells these draws from those of the inputs."""
_NO_MARKS: Final = Marks(numbers={}, has_none=False, has_whole=False)


def with_marks(prepared: PreparedWorkload, input_set: InputSet) -> InputSet:
    """Return a set with such numbers; itself where there are none."""
    if not any(map(may_be_places, input_set.inputs)):
        return input_set
    return _with_marks(prepared, input_set, prepared.once(_marks))


def _marks(prepared: PreparedWorkload) -> Marks:
    """Return the numbers, and the kinds of rows, that the reference gives results on."""
    if prepared.traits.sizes_by_values:
        return _NO_MARKS
    ordinary = prepared.shared_set(PREPARATION_SEED)
    every = dict(_numbers(prepared, ordinary))
    for has_none, has_whole in ((True, True), (True, False), (False, False)):
        marks = Marks(numbers=every, has_none=has_none, has_whole=has_whole)
        if every and is_defined(_with_marks(prepared, ordinary, marks)):
            return marks

    def is_taken(index: int, number: int) -> bool:
        alone = Marks(numbers={index: (number,)}, has_none=False, has_whole=False)
        return is_defined(_with_marks(prepared, ordinary, alone))

    taken = {i: tuple(n for n in every[i] if is_taken(i, n)) for i in every}
    marks = Marks(
        numbers={i: numbers for i, numbers in taken.items() if numbers},
        has_none=False,
        has_whole=False,
    )
    is_together = bool(marks.numbers) and is_defined(_with_marks(prepared, ordinary, marks))
    return marks if is_together else _NO_MARKS


def _with_marks(prepared: PreparedWorkload, input_set: InputSet, marks: Marks) -> InputSet:
    generator = generator_of_stream(_STREAM, input_set.seed, prepared.module.device)
    inputs = list(input_set.inputs)
    for index, numbers in marks.numbers.items():
        inputs[index] = _with_numbers(inputs[index], numbers, marks, generator)
    return input_set.with_inputs(inputs)


def _numbers(
    prepared: PreparedWorkload, ordinary: InputSet
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield the inputs that may hold marks, by index, with these."""
    uses: Mapping[int, frozenset[int]] = prepared.input_uses.marks
    for index in free_inputs(prepared, ordinary):
        tensor = ordinary.inputs[index]
        if index not in uses or index in prepared.input_uses.lengths:
            continue
        if not may_be_places(tensor) or not tensor.numel() or not _is_free(tensor):
            continue
        least, most = torch.iinfo(tensor.dtype).min, torch.iinfo(tensor.dtype).max
        numbers = tuple(sorted(n for n in uses[index] if least <= n <= most))
        if numbers:
            yield index, numbers


def _is_free(tensor: torch.Tensor) -> bool:
    """Return whether elements are drawn one by one, and are more than a mask."""
    bound = structures(tensor) - {"symmetric"}
    is_drawn = not bound or (bound == {"permutation"} and may_be_an_accident(tensor))
    return is_drawn and int(tensor.max()) - int(tensor.min()) >= _CLASSES


def _with_numbers(
    tensor: torch.Tensor, numbers: tuple[int, ...], marks: Marks, generator: torch.Generator
) -> torch.Tensor:
    device = tensor.device
    values = torch.tensor(numbers, dtype=tensor.dtype, device=device)
    rows = tensor.reshape(-1, tensor.shape[-1]) if tensor.ndim else tensor.reshape(1, 1)
    count, width = rows.shape

    def drawn(most: int, *shape: int) -> torch.Tensor:
        return torch.randint(0, most, shape, generator=generator, device=device)

    kinds = drawn(_KINDS, count, 1)
    starts, chosen = 1 + drawn(max(width - 1, 1), count, 1), values[drawn(len(values), count, 1)]
    is_placed = torch.rand(rows.shape, generator=generator, device=device) < _SHARE
    result = torch.where(is_placed, values[drawn(len(values), count, width)], rows)
    if count == 1 or width == 1:
        return result.reshape(tensor.shape)  # neighbours are no row
    result = torch.where(
        (kinds == _RUN) & (torch.arange(width, device=device) >= starts), chosen, result
    )
    if marks.has_whole:
        result = torch.where(kinds == _WHOLE, chosen, result)
    ordinary = tensor[~torch.isin(tensor, values)]
    if marks.has_none and ordinary.numel():
        is_mark = torch.isin(rows, values)
        without = torch.where(is_mark, ordinary[0], rows)
        result = torch.where(kinds == _NONE, without, result)
    return result.reshape(tensor.shape)
