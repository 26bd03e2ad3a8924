"""Numbers of both signs beside small whole ones, where one without the other gives no number.

A negative number has powers by whole exponents alone, so that no change of one input shows them.
Which inputs they are is found by trial.
"""

from itertools import permutations
from typing import Final

import torch

from evaluator_svc.judge.inputs.defined_values import SignsBesideWhole
from evaluator_svc.judge.inputs.free_inputs import free_inputs, with_free_inputs
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PREPARATION_SEED, PreparedWorkload
from evaluator_svc.judge.reference.formats import FLOAT8
from evaluator_svc.judge.tensors.structure import keeps_structure
from evaluator_svc.judge.tensors.tensor_parts import generator_of_stream, random_signs
from evaluator_svc.judge.unusual_values.defined_results import is_defined

_LEAST: Final = (-2, 0)
"""Least whole number, the best first: zero has no power below zero."""
_MOST: Final = 3
_MOST_INPUTS: Final = 4
"""Of floats; of more too many pairs would be tried."""
_STREAM: Final = 0x3C6E_F372_FE94_F82B
"""Tells these draws from those of the inputs."""


def with_signs_beside_whole(
    prepared: PreparedWorkload, input_set: InputSet, pair: SignsBesideWhole
) -> InputSet:
    """Return a set of which one input has random signs, and another small whole numbers."""
    generator = generator_of_stream(_STREAM, input_set.seed, prepared.module.device)

    def other(index: int, tensor: torch.Tensor) -> torch.Tensor:
        if index == pair.signs:
            changed = tensor * random_signs(tensor, generator)
        elif index == pair.whole:
            shape, device = tensor.shape, tensor.device
            drawn = torch.randint(pair.least, _MOST + 1, shape, generator=generator, device=device)
            changed = drawn.to(tensor.dtype)
        else:
            return tensor
        return changed if keeps_structure(tensor, changed) else tensor

    return with_free_inputs(prepared, input_set, other)


def signs_beside_whole(prepared: PreparedWorkload) -> SignsBesideWhole | None:
    """Return two inputs that the reference gives numbers on together; None where there are none.

    It gives none where the first alone has random signs.
    """
    ordinary = prepared.shared_set(PREPARATION_SEED)
    floats = [
        index
        for index in free_inputs(prepared, ordinary)
        if ordinary.inputs[index].is_floating_point() and ordinary.inputs[index].dtype not in FLOAT8
    ]
    if not prepared.traits.may_overflow or not 1 < len(floats) <= _MOST_INPUTS:
        return None

    def is_taken(pair: SignsBesideWhole) -> bool:
        return is_defined(with_signs_beside_whole(prepared, ordinary, pair))

    kept = [i for i in floats if is_taken(SignsBesideWhole(signs=i))]
    pairs = (
        SignsBesideWhole(signs=signs, whole=whole, least=least)
        for signs, whole in permutations(floats, 2)
        for least in _LEAST
        if signs not in kept
    )
    return next(filter(is_taken, pairs), None)
