"""Elements that are far from what they should be, measured by their own size.

The tolerance is in units of a row's scale, beneath which small elements may hold anything: zeros,
or whatever costs no work. Where the reference itself is well conditioned at an element, so that a
small change of its inputs changes it by little, an honest kernel is close to it in relation to the
element, too. Condition is found by perturbing inputs and parameters in float64.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import torch

from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.messages.judge import FarElements

TOLD_SHARE: Final = 1 / 1024
"""Share of an output's elements from which far ones are looked into. Single ones are what rounding
leaves of sums that cancel."""

_FAR: Final = 1 / 8
"""Relative error of an element that is far: no format of 8 bits of mantissa or more has it."""

_FAR_WIDE: Final = 1 / 64
"""The same where nothing rounds to fewer bits than float32 has, and no product may be TF32. Less
would refuse honest kernels: of a split product behind a GELU one element in 2200 is off by this."""

_MOVED: Final = 4.0
"""An element is far off beyond this multiple of what a perturbation moves it by; the errors of an
honest 16-bit kernel are smaller."""

_ROUNDED: Final = 16.0
"""An element is far off only beyond this multiple of the reference's rounding errors, too: another
algorithm has larger ones."""

_MOVES: Final = 1 / 32
"""An element that a perturbation moves by more is not well conditioned."""

_PERTURBATION: Final = 2.0**-14
"""Relative, in tasks of float32: a thousand times its rounding error."""

_LEAST: Final = {torch.float16: 2.0**-18, torch.bfloat16: 2.0**-100}
"""Magnitude below which an element may be flushed to zero, or lose bits; 2^-100 in float32. In
float16, whose numbers below 2^-14 keep fewer, rounding still leaves errors of 1/128 there."""

PERTURBATION_SEEDS: Final = (1, 2)
ROUNDING_SEEDS: Final = (3, 4)
_BLOCK_ELEMENTS: Final = {"cpu": 1 << 18, "cuda": 1 << 22}
"""Elements worked on at a time, with temporaries that a CPU's cache is to hold."""
_REPEATED_ELEMENTS: Final = 1 << 16
_REPEATED_SHARE: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceRuns:
    """One output of further runs of the reference."""

    perturbed: tuple[torch.Tensor, ...]
    """In float64, on inputs and parameters that a small factor has moved."""
    rounded: tuple[torch.Tensor, ...]
    """In its own formats: as eager PyTorch computes it, and with every result moved by half a
    unit in the last place."""


def is_measurable(output: torch.Tensor) -> bool:
    """Return whether an output's format has bits enough to tell far elements from rounding."""
    return output.is_floating_point() and output.element_size() > 1


def far_error(rounding: torch.dtype, *, allows_tf32: bool) -> float:
    """Return the relative error from which an element is far.

    Args:
        rounding: The narrowest format that the output was rounded to.
        allows_tf32: Whether products may be in TF32.
    """
    is_wide = rounding in (torch.float32, torch.float64) and not allows_tf32
    return _FAR_WIDE if is_wide else _FAR


def far_share(actual: torch.Tensor, expected: torch.Tensor, least: float) -> float:
    """Return the share of elements that are off by more than `least` of their own size."""
    pairs = _blocks(actual, expected)
    count = sum(int(_is_far(a, e, least).sum()) for a, e in pairs)
    return count / max(expected.numel(), 1)


def perturbed(
    input_set: InputSet,
    inputs: Sequence[torch.Tensor],
    seed: int,
    dtype: torch.dtype = torch.float64,
) -> tuple[torch.Tensor, ...]:
    """Return the outputs on inputs and parameters that a small factor has moved.

    Args:
        input_set: The reference and its parameters.
        inputs: What it runs on.
        seed: Of the perturbation.
        dtype: What it is computed in: float32 where the reference does not run in float64.

    Raises:
        TaskInvalidError: the reference does not run on them.
    """
    moved, state = moved_sources(input_set, inputs, seed)
    if dtype is not torch.float64:
        moved = [_like(new, old) for new, old in zip(moved, inputs, strict=True)]
        state = {path: _like(new, input_set.state[path]) for path, new in state.items()}
    return input_set.run(dtype=dtype, inputs=moved, state=state)


def moved_sources(
    input_set: InputSet, inputs: Sequence[torch.Tensor], seed: int
) -> tuple[list[torch.Tensor], dict[str, torch.Tensor]]:
    """Return inputs and parameters in float64, moved by a small factor; buffers as they are."""
    size = max(_PERTURBATION, float(torch.finfo(input_set.module.rounding).eps) / 2)
    generator = torch.Generator(input_set.module.device).manual_seed(seed)
    moved = [_moved(tensor, size, generator) for tensor in inputs]
    parameters = {
        path: _moved(tensor, size, generator) for path, tensor in _parameters(input_set).items()
    }
    return moved, {**input_set.state, **parameters}


def far_elements(
    actual: torch.Tensor,
    expected: torch.Tensor,
    exact: torch.Tensor,
    runs: ReferenceRuns,
    least: float,
) -> FarElements:
    """Return how many elements are far where the reference is well conditioned.

    Args:
        actual: What the candidate wrote.
        expected: The reference in its own formats.
        exact: The same in float64.
        runs: Further runs of the reference.
        least: The relative error from which an element is far (`far_error`).
    """
    far, zero, samples = 0, 0, []
    ways = (*runs.rounded, *runs.perturbed)
    for a, e, x, *others in _blocks(actual, expected, exact, *ways):
        right = x.double()
        near = _MOVES * right.abs()
        is_known = (e.double() - right).abs_() <= near
        excused = torch.zeros_like(near)
        for index, other in enumerate(others):
            distance = (other.double() - right).abs_()
            is_known &= distance <= near
            times = _ROUNDED if index < len(runs.rounded) else _MOVED
            excused = torch.maximum(excused, times * distance)
        is_far = _is_far(a, e, least)
        if least < _FAR:
            is_far &= (a.double() - right).abs_() > excused
        wrong = a[is_known & is_far]
        far += wrong.numel()
        zero += int((wrong == 0).sum())
        samples.append(wrong[:_REPEATED_ELEMENTS].float())
    total = max(expected.numel(), 1)
    values = torch.cat(samples) if samples else torch.zeros(0)
    values = values[:: -(-values.numel() // _REPEATED_ELEMENTS) or 1]
    _, counts = torch.unique(values, return_counts=True)
    is_repeated = values.numel() > 0 and int(counts.max()) >= _REPEATED_SHARE * values.numel()
    return FarElements(
        share=far / total,
        zero_share=zero / total,
        is_repeated=is_repeated,
        element_count=expected.numel(),
        least=least,
    )


def _is_far(actual: torch.Tensor, expected: torch.Tensor, least: float) -> torch.Tensor:
    size = expected.double().abs()
    error = (actual.double() - expected.double()).abs_()
    smallest = _LEAST.get(expected.dtype, 2.0**-100)
    return (error > least * size) & (size >= smallest) & size.isfinite()


def _blocks(*tensors: torch.Tensor) -> "zip[tuple[torch.Tensor, ...]]":
    size = _BLOCK_ELEMENTS[tensors[0].device.type]
    parts = (torch.split(tensor.reshape(-1), size) for tensor in tensors)
    return zip(*parts, strict=True)


def _like(moved: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    return moved.to(tensor.dtype)


def _parameters(input_set: InputSet) -> Mapping[str, torch.Tensor]:
    paths = {path for path, _ in input_set.module.model.named_parameters()}
    return {path: tensor for path, tensor in input_set.state.items() if path in paths}


def _moved(tensor: torch.Tensor, size: float, generator: torch.Generator) -> torch.Tensor:
    """Return the tensor in float64, each element times 1 ± `size` at most; others as they are."""
    if not tensor.is_floating_point():
        return tensor
    factor = torch.rand(
        tensor.shape, generator=generator, dtype=torch.float32, device=tensor.device
    )
    return tensor.double() * (1.0 + size * (2.0 * factor.double() - 1.0))
