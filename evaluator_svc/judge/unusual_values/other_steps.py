"""Whole numbers that a reference takes for powers or shifts: zero, negative ones, and larger ones.

Of larger sizes nothing would be left, so they have a range of their own: shifts that of the bits
that are shifted, powers a little more than what is drawn.
"""

from typing import Final

import torch

from evaluator_svc.judge.inputs.free_inputs import with_free_inputs
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload
from evaluator_svc.judge.tensors.structure import structures
from evaluator_svc.judge.tensors.tensor_parts import generator_of_stream

LEAST_STEPS: Final = (-2, 0)
"""Least powers that are tried, the best first; no shift is below zero."""
_SHARE: Final = 0.5
"""Of the elements."""
_STREAM: Final = 0x510E_527F_ADE6_82D1
"""Tells these draws from those of the inputs."""


def with_other_steps(
    prepared: PreparedWorkload, input_set: InputSet, least: int | None
) -> InputSet:
    """Return a set with such numbers; itself where there are none, or `least` is None."""
    steps = {} if least is None else prepared.input_uses.steps
    generator = generator_of_stream(_STREAM, input_set.seed, prepared.module.device)

    def other(index: int, tensor: torch.Tensor) -> torch.Tensor:
        if index not in steps or not tensor.numel() or structures(tensor):
            return tensor
        lowest, most = steps[index]
        first, shape, device = max(least or 0, lowest), tensor.shape, tensor.device
        drawn = torch.randint(first, most + 1, shape, generator=generator, device=device)
        is_other = torch.rand(shape, generator=generator, device=device) < _SHARE
        return torch.where(is_other, drawn.to(tensor.dtype), tensor)

    return with_free_inputs(prepared, input_set, other)
