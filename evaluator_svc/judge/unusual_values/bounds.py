"""Elements at the numbers that a reference compares with or cuts off at, beside them and beyond.

No draw of ordinary values hits a bound, and few go beyond one of thousands. The numbers are those
of the reference's own operators (`reference/input_uses.py`), and one for shares of one.
"""

from collections.abc import Sequence
from typing import Final

import torch

from evaluator_svc.judge.inputs.free_inputs import free_inputs, with_free_inputs
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PREPARATION_SEED, PreparedWorkload
from evaluator_svc.judge.reference.formats import FLOAT8
from evaluator_svc.judge.tensors.structure import keeps_structure, structures
from evaluator_svc.judge.tensors.tensor_parts import by_block, generator_of
from evaluator_svc.judge.unusual_values.common_values import with_common_values
from evaluator_svc.judge.unusual_values.defined_results import is_defined
from evaluator_svc.judge.unusual_values.domain_ends import domain_ends, with_domain_ends
from evaluator_svc.judge.unusual_values.far_rows import defined_inputs

_SHARE: Final = 0.25
"""Of the elements."""
_BEYOND: Final = 1.25
_WHOLE_SHARE: Final = 0.125
"""Share of elements that become one, of a tensor of shares."""
_LARGE_SHARE: Final = 0.9
"""The largest of shares that are drawn up to one is above it."""


def with_bounds(prepared: PreparedWorkload, input_set: InputSet) -> InputSet:
    """Return a set with such elements; itself where the reference has no bounds.

    Where it compares floats with those of another tensor, some elements are what another has. Of
    shares some are one, if that gives numbers; some lie next to an end of the domain.
    """
    uses = prepared.float_uses
    if uses is not None and uses.compares_floats:
        input_set = with_common_values(prepared, input_set)
    if uses is not None and uses.bounds:
        bounds = sorted(uses.bounds)
        input_set = with_free_inputs(
            prepared, input_set, lambda _, tensor: _with_bounds(tensor, bounds)
        )
    input_set = _with_whole(prepared, input_set, prepared.once(_shares))
    return with_domain_ends(prepared, input_set, prepared.once(domain_ends))


def _shares(prepared: PreparedWorkload) -> frozenset[int]:
    """Return inputs between zero and one of which the reference takes one itself, too.

    Where nothing is divided, and no logarithm taken, one is nothing special.
    """
    if not prepared.traits.divides:
        return frozenset()
    ordinary = prepared.shared_set(PREPARATION_SEED)
    shares = (i for i in free_inputs(prepared, ordinary) if _are_shares(ordinary.inputs[i]))
    return defined_inputs(
        shares, lambda chosen: is_defined(_with_whole(prepared, ordinary, chosen))
    )


def _are_shares(tensor: torch.Tensor) -> bool:
    if not tensor.is_floating_point() or tensor.dtype in FLOAT8 or not tensor.numel():
        return False
    low, high = (float(end) for end in torch.aminmax(tensor))
    return low >= 0.0 and _LARGE_SHARE < high <= 1.0 and not structures(tensor)


def _with_whole(
    prepared: PreparedWorkload, input_set: InputSet, chosen: frozenset[int]
) -> InputSet:
    def whole(index: int, tensor: torch.Tensor) -> torch.Tensor:
        if index not in chosen:
            return tensor
        shape, generator = tensor.shape, generator_of(tensor)
        drawn = torch.rand(shape, generator=generator, device=tensor.device)
        return torch.where(drawn < _WHOLE_SHARE, 1.0, tensor).to(tensor.dtype)

    return with_free_inputs(prepared, input_set, whole)


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
