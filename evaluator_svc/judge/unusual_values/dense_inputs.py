"""Inputs without the zeros that lie at the same places in every draw: bands, blocks, empty tails.

A kernel may leave out what is always zero only where the task says that its values are
`constants`. Triangular matrices keep their half: that is what they are called. Zeros of parameters
are filled in `inputs/parameters.py`.
"""

from typing import Final

import torch

from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload
from evaluator_svc.judge.tensors.structure import is_symmetric, keeps_structure
from evaluator_svc.judge.tensors.tensor_parts import blocks_of, generator_of_stream

_STREAM: Final = 0x52DC_E729_38B3_4F27
"""Tells these draws from those of the inputs."""


def with_dense_inputs(prepared: PreparedWorkload, input_set: InputSet) -> InputSet:
    """Return a set with other values of a tensor in place of its zeros; itself where none is so.

    A tensor that would lose its structure stays.
    """
    generator = generator_of_stream(_STREAM, input_set.seed, prepared.module.device)
    constants, names = prepared.task.constants, input_set.arguments.names
    inputs = [
        _filled(tensor, generator) if has_zeros and name not in constants else tensor
        for name, tensor, has_zeros in zip(
            names, input_set.inputs, prepared.inputs_with_zeros, strict=True
        )
    ]
    return input_set.with_inputs(inputs)


def _filled(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    kept = next((part[part != 0] for part in blocks_of(tensor) if bool(part.any())), None)
    if kept is None:
        return tensor
    result = tensor.clone(memory_format=torch.contiguous_format)
    for part in blocks_of(result):
        zeros = part == 0
        count = int(zeros.count_nonzero())
        drawn = torch.randint(0, len(kept), (count,), generator=generator, device=part.device)
        part[zeros] = kept[drawn]
    if is_symmetric(tensor):
        result = result.tril() + result.tril(-1).mT
    return result if keeps_structure(tensor, result) else tensor
