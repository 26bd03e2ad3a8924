"""Inputs whose rows are close to each other: one row common to all of them, and little besides.

Of tensors that are drawn one by one no difference is small beside what it is a difference of. Where
the reference subtracts first, it loses nothing on such rows; a kernel that computes it from
squares and products loses all. Rows themselves stay ordinary: what is computed along one is as
exact as ever. Inputs that have the same values, moved by some places, are in `alike_inputs.py`.
"""

from typing import Final

import torch

from evaluator_svc.judge.inputs.free_inputs import free_inputs
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload
from evaluator_svc.judge.tensors.structure import keeps_structure

_CLOSENESS: Final = {torch.float32: 2.0**-10, torch.float64: 2.0**-20}
"""Size of what differs, beside what is common. Two fifths of a format's bits: a difference keeps
the other three, and what is made of squares has one fifth."""


def with_close_inputs(prepared: PreparedWorkload, input_set: InputSet) -> InputSet:
    """Return a set in which all rows of one length and type are close to one row.

    The set itself where no two inputs have such rows, and the reference subtracts no input's
    elements from each other. Zeros stay, what is in a range stays there, and so does a tensor that
    would lose its structure.
    """
    kinds = dict[object, list[int]]()
    for index in free_inputs(prepared, input_set):
        tensor = input_set.inputs[index]
        if tensor.dtype in _CLOSENESS and tensor.ndim and tensor.numel():
            kinds.setdefault((tensor.dtype, tensor.shape[-1]), []).append(index)
    inputs = list(input_set.inputs)
    for places in kinds.values():
        if len(places) < 2 and places[0] not in prepared.self_differences:
            continue
        common = _common_row(inputs[places[0]])
        for place in places:
            close = _close_to(common, inputs[place])
            if keeps_structure(inputs[place], close):
                inputs[place] = close
    return input_set.with_inputs(inputs)


def _common_row(tensor: torch.Tensor) -> torch.Tensor:
    """Return the row with the largest sum: products of such rows do not cancel."""
    rows = tensor.reshape(-1, tensor.shape[-1])
    return rows[int(rows.sum(-1).abs().nan_to_num().argmax())]


def _close_to(row: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    low, high = torch.aminmax(tensor)
    result = tensor * _CLOSENESS[tensor.dtype]
    result += row.abs() if bool(low >= 0) else row
    return result.clamp_(low, high).masked_fill_(tensor == 0, 0.0)
