"""Elements at the numbers that a reference compares with or cuts off at, beside them and beyond.

No draw of ordinary values hits a bound, and few go beyond one of thousands. The numbers are those
of the reference's own operators (`reference/input_uses.py`).
"""

from collections.abc import Sequence
from typing import Final

import torch

from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload
from evaluator_svc.judge.reference.formats import FLOAT8
from evaluator_svc.judge.tensors.structure import keeps_structure
from evaluator_svc.judge.tensors.tensor_parts import by_block, generator_of
from evaluator_svc.judge.unusual_values.common_values import with_common_values

_SHARE: Final = 0.25
"""Of the elements."""
_BEYOND: Final = 1.25


def with_bounds(prepared: PreparedWorkload, input_set: InputSet) -> InputSet:
    """Return a set with such elements; itself where the reference has no bounds.

    Where it compares floats with those of another tensor, some elements are what another has.
    """
    uses = prepared.float_uses
    if uses is not None and uses.compares_floats:
        input_set = with_common_values(prepared, input_set)
    if uses is None or not uses.bounds:
        return input_set
    bounds = sorted(uses.bounds)
    constants, fixed = prepared.task.constants, prepared.fixed_inputs
    named = zip(input_set.arguments.names, input_set.inputs, fixed, strict=True)
    inputs = [
        tensor if name in constants or is_fixed else _with_bounds(tensor, bounds)
        for name, tensor, is_fixed in named
    ]
    return input_set.with_inputs(inputs)


def _with_bounds(tensor: torch.Tensor, bounds: Sequence[float]) -> torch.Tensor:
    if not tensor.is_floating_point() or tensor.dtype in FLOAT8 or not tensor.numel():
        return tensor
    most, unit = torch.finfo(tensor.dtype).max, torch.finfo(tensor.dtype).eps
    has_signs = bool((tensor < 0).any())
    held = [b for b in bounds if abs(b) * _BEYOND < most and (has_signs or b > 0)]
    if not held:
        return tensor
    near = [b * factor for b in held for factor in (1.0, 1.0 - unit, 1.0 + unit, _BEYOND)]
    # Rounded to the format only now: the neighbours of a number are those in it.
    values = torch.tensor(near, dtype=torch.float64, device=tensor.device).to(tensor.dtype)
    generator = generator_of(tensor)

    def placed(old: torch.Tensor) -> torch.Tensor:
        shape, device = old.shape, old.device
        chosen = torch.randint(0, len(values), shape, generator=generator, device=device)
        is_placed = torch.rand(shape, generator=generator, device=device) < _SHARE
        return torch.where(is_placed & (old != 0), values[chosen].to(old.dtype), old)

    result = by_block(tensor, placed)
    return result if keeps_structure(tensor, result) else tensor
