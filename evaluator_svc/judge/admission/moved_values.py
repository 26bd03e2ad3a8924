"""Outputs that hold values of inputs and nothing else: sorted, gathered, clamped, the largest ones.

An operator that moves and selects rounds nothing, so neither may a candidate: what it writes is to
be equal. Found by trial: each element occurs among the values of inputs and parameters, its sign
aside, or is one of a few constants, such as the bound of a clamp; also where the values have been
moved off any grid, and on inputs of unusual values.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import torch

from evaluator_svc.judge.comparison.far_elements import PERTURBATION_SEEDS, moved_sources
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload
from evaluator_svc.judge.unusual_values.distributions import with_distribution
from evaluator_svc.messages.distribution_traits import Trait, with_trait
from kernel_foundry.domain.admission import Distribution
from kernel_foundry.errors import TaskInvalidError

_MOST_CONSTANTS: Final = 4
"""Zero, two bounds, and one to spare."""

_MOST_BYTES: Final = 1 << 26
"""Of a workload's inputs, parameters and outputs: values are sorted to be looked up."""


def moves_values(prepared: Sequence[PreparedWorkload], seed: int) -> tuple[bool, ...]:
    """Return of each output whether the reference only moves values of inputs into it.

    Large workloads are not looked at; without any other one, no output is such.
    """
    small = sorted((i for i in prepared if _is_small(i)), key=lambda item: item.size_bytes)
    found: tuple[bool, ...] = ()
    for item in small:
        drawn = item.shared_set(seed)
        unusual = with_trait(Trait.BRANCHES) if item is small[0] else ()
        # Beyond its bounds a clamp gives nothing but these.
        looks = [_moved_outputs(drawn)]
        looks += [
            _known_outputs(_unusual(item, drawn, which)) for which in unusual if any(looks[0])
        ]
        for here in looks:
            found = tuple(a and b for a, b in zip(found or here, here, strict=True))
        if not any(found):
            break
    return found


def _is_small(item: PreparedWorkload) -> bool:
    return not item.is_large and item.sizes.set_bytes <= _MOST_BYTES


def _unusual(item: PreparedWorkload, drawn: InputSet, which: Distribution) -> InputSet:
    changed = with_distribution(item, drawn, which)
    return changed if changed.is_taken() else drawn


def _known_outputs(input_set: InputSet) -> tuple[bool, ...]:
    """Return which outputs hold values of inputs or a few constants."""
    own = _values_of(input_set, None)
    if not any(own):
        return (False,) * len(own)
    # Of 16 bits most values occur in most tensors: with all bits of float64 none does by chance.
    ways = [_values_of(input_set, seed) for seed in PERTURBATION_SEEDS]
    return tuple(
        first is not None and one is not None and two is not None and one.others == two.others
        for first, one, two in zip(own, *ways, strict=True)
    )


def _moved_outputs(input_set: InputSet) -> tuple[bool, ...]:
    """Return which outputs hold values of inputs, and maybe a few constants."""
    known = _known_outputs(input_set)
    if not any(known):
        return known
    own = _values_of(input_set, None)
    return tuple(
        is_known and values is not None and values.is_moved
        for is_known, values in zip(known, own, strict=True)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Values:
    """What an output holds."""

    is_moved: bool
    """Whether a value of the inputs is among it."""
    others: frozenset[float]
    """Values that are none of the inputs'."""


def _values_of(input_set: InputSet, seed: int | None) -> list[_Values | None]:
    """Return what each output holds, None where that are many other values than the inputs'.

    Args:
        input_set: Inputs and parameters.
        seed: Of a perturbation in float64; None: as they are, in the reference's own formats.
    """
    state: Mapping[str, torch.Tensor]
    try:
        if seed is None:
            inputs, state = list(input_set.inputs), input_set.state
            outputs = input_set.own()
        else:
            inputs, state = moved_sources(input_set, input_set.inputs, seed)
            outputs = input_set.run(dtype=torch.float64, inputs=inputs, state=state)
    except TaskInvalidError:
        return [None] * len(input_set.expected())
    sources = [t for t in (*inputs, *state.values()) if t.is_floating_point() and t.numel()]
    return [_values(output, sources) for output in outputs]


def _values(output: torch.Tensor, sources: Sequence[torch.Tensor]) -> _Values | None:
    if not output.is_floating_point() or output.element_size() < 2 or not sources:
        return None
    values = torch.unique(torch.cat([t.reshape(-1).to(output.dtype).abs() for t in sources]))
    written = output.reshape(-1).abs()
    place = torch.searchsorted(values, written).clamp_(max=len(values) - 1)
    is_known = torch.eq(values[place], written)
    others = torch.unique(written[~is_known & written.isfinite()])
    if len(others) > _MOST_CONSTANTS:
        return None
    return _Values(is_moved=bool(is_known.any()), others=frozenset(others.tolist()))
