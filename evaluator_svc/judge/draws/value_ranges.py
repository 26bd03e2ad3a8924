"""Inputs of unusual values, which show what ordinary ones hide: overflow, cancellation, shortcuts.

Only floating-point inputs are changed, and only where they keep their structure; parameters stay.
What admission finds of a task here tells evaluations where the reference is defined well enough
to hold candidates to it. Knows nothing of candidates.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import torch

from evaluator_svc.judge.admission.tolerance import (
    CEILING,
    SAFETY,
    UNKNOWN,
    RoundingNoise,
    exact_or_own,
)
from evaluator_svc.judge.draws.changed_values import CHANGES, large
from evaluator_svc.judge.draws.input_set import InputSet
from evaluator_svc.judge.draws.prepared import PREPARATION_SEED, PreparedWorkload
from evaluator_svc.judge.draws.structure import keeps_structure
from evaluator_svc.judge.reference.formats import computable
from evaluator_svc.judge.verdict.compare import group_scale, group_shape
from evaluator_svc.memory_needs import has_ranges_size
from kernel_foundry.domain.admission import Distribution, TensorRole, ValueRange
from kernel_foundry.domain.task import Tolerance
from kernel_foundry.errors import TaskInvalidError

_USUAL_FACTOR: Final = 4.0
_OFFSET_FACTOR: Final = {torch.float32: 32.0}
"""Variance as mean of squares less square of mean is honest in float32: at an offset of 16 it
loses 8 bits, and a shortcut through 16 bits is still worse."""
_MOST_FACTOR: Final = 64.0
"""Where the tolerance was given by hand."""
_REPORTED: Final = (Distribution.DENORMAL, Distribution.NON_FINITE)
"""Kernels may flush denormals and treat NaN as they like: a difference is told, no more."""
_TIED: Final = (
    Distribution.OFFSET,
    Distribution.ZEROS,
    Distribution.SPARSE,
    Distribution.INTEGERS,
    Distribution.POWERS,
)
"""Equal values, among which a kernel may take another index than the reference does."""
_NOISE_SEEDS: Final = (1, 2)


_BY_ELEMENT: Final = (
    Distribution.SPARSE,
    Distribution.SIGNS,
    Distribution.MAGNITUDES,
    Distribution.INTEGERS,
    Distribution.POWERS,
)
"""Each element changes in a way of its own, which breaks the pattern of a table."""


def in_range(
    prepared: PreparedWorkload, input_set: InputSet, distribution: Distribution
) -> InputSet:
    """Return a copy of `input_set`, a draw of `prepared`, whose inputs are of `distribution`."""
    if distribution is Distribution.LARGE and prepared.large_sign is None:
        prepared.large_sign = _large_sign(prepared)
    result = _changed(input_set, distribution, prepared.large_sign or 1.0)
    kept = [name in prepared.task.constants for name in input_set.arguments.names]
    if distribution in _BY_ELEMENT:
        # Tables of sines and the like repeat themselves in some pattern, which single places break.
        kept = [a or b for a, b in zip(kept, prepared.fixed_inputs, strict=True)]
    pairs = zip(input_set.inputs, result.inputs, kept, strict=True)
    inputs = [old if is_kept else new for old, new, is_kept in pairs]
    return input_set.with_values(inputs, input_set.state)


def _changed(input_set: InputSet, distribution: Distribution, sign: float) -> InputSet:
    is_large = distribution is Distribution.LARGE
    change = partial(large, sign=sign) if is_large else CHANGES[distribution]
    inputs = [_where_free(tensor, change) for tensor in input_set.inputs]
    return input_set.with_values(inputs, input_set.state)


def _where_free(
    tensor: torch.Tensor, change: Callable[[torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    """Return a tensor changed, or as it is where that would break what a kernel may rely on."""
    if not tensor.is_floating_point() or not tensor.numel():
        return tensor
    result = change(tensor)
    return result if result is tensor or keeps_structure(tensor, result) else tensor


def _large_sign(prepared: PreparedWorkload) -> float:
    """Return -1 where the reference is defined on inputs of the other sign, else 1.

    Inputs that are never negative hide what an operator does: a copy of them is their ReLU. Asked
    of inputs that no candidate sees: of theirs nothing is computed before they ran.
    """
    turned = _changed(prepared.input_set(PREPARATION_SEED), Distribution.LARGE, -1.0)
    if not prepared.takes(turned.inputs, turned.state):
        return 1.0
    try:
        is_defined = all(bool(computable(output).isfinite().all()) for output in turned.expected())
    except TaskInvalidError:
        is_defined = False
    return -1.0 if is_defined else 1.0


def find_value_ranges(
    prepared: Sequence[PreparedWorkload], tolerance: Tolerance, seed: int
) -> dict[str, tuple[ValueRange, ...]]:
    """Return what candidates are tried on besides ordinary inputs, by workload.

    On the smallest workload, a held-out one if there is any, and on the smallest one that is
    timed. Where a workload is too large for the copies that finding out takes, it has what the
    smallest has, with twice the factors.

    Args:
        prepared: All workloads of a task.
        tolerance: What candidates are held to on ordinary inputs.
        seed: Of the inputs that the reference is tried on.
    """
    found: dict[str, tuple[ValueRange, ...]] = {}
    for item in _chosen(prepared):
        if item.is_large:
            known = next(iter(found.values()), ())
            ranges = tuple(replace(r, factor=2 * r.factor) for r in known)
        else:
            ordinary = item.input_set(seed)
            tried = (_value_range(item, ordinary, which, tolerance) for which in Distribution)
            ranges = tuple(value_range for value_range in tried if value_range)
        if ranges:
            found[item.workload.name] = ranges
    return found


def _chosen(prepared: Sequence[PreparedWorkload]) -> list[PreparedWorkload]:
    """Return the smallest workload with floating-point inputs and the smallest timed one."""
    fitting = [
        item
        for item in prepared
        if (has_ranges_size(item.sizes) or item.is_repeatable)
        and any(t.role is TensorRole.INPUT and "float" in t.dtype for t in item.tensors)
    ]
    order = sorted(fitting, key=lambda item: (not item.workload.held_out, item.size_bytes))
    timed = [item for item in order if not item.workload.held_out]
    return list(dict.fromkeys((*order[:1], *timed[:1])))


def _value_range(
    prepared: PreparedWorkload,
    ordinary: InputSet,
    distribution: Distribution,
    tolerance: Tolerance,
) -> ValueRange | None:
    """Return how candidates are held to a distribution; None where the reference is not defined."""
    dtype = ordinary.module.rounding
    try:
        changed = in_range(prepared, ordinary, distribution)
        if all(new is old for new, old in zip(changed.inputs, ordinary.inputs, strict=True)):
            return None
        if not prepared.takes(changed.inputs, changed.state):
            return None
        expected = changed.expected()
        if distribution in _REPORTED:
            return ValueRange(distribution=distribution, factor=_USUAL_FACTOR, is_binding=False)
        if not all(bool(computable(output).isfinite().all()) for output in expected):
            return None
        noise = _noise(changed, expected, tolerance)
        is_ambiguous = distribution in _TIED and any(not o.is_floating_point() for o in expected)
    except TaskInvalidError:
        return None
    least = _USUAL_FACTOR
    if distribution is Distribution.OFFSET:
        least = _OFFSET_FACTOR.get(dtype, least)
    is_derived = ordinary.module.task.tolerance is None
    most = max(CEILING[dtype] / tolerance.rtol, 1.0) if is_derived else _MOST_FACTOR
    needed = SAFETY[dtype] * noise
    if needed > most:
        return None
    factor = max(needed, min(least, most))
    return ValueRange(
        distribution=distribution, factor=float(f"{factor:.2g}"), is_binding=not is_ambiguous
    )


def _noise(changed: InputSet, expected: Sequence[torch.Tensor], tolerance: Tolerance) -> float:
    """Return the largest error of a reordered evaluation, in units of the tolerance.

    The inputs are moved by a rounding error too: what a kernel computes of them in its own way
    cannot be better defined than that.
    """
    known = exact_or_own(changed)
    exact = known.outputs
    is_scaled = changed.module.task.tolerance is None
    worst = _distance(expected, exact, tolerance, is_scaled=is_scaled)
    for seed in _NOISE_SEEDS:
        device = changed.module.device
        generator = torch.Generator(device).manual_seed(seed)
        moved = [_moved(tensor, generator) for tensor in changed.inputs]
        with RoundingNoise(seed=seed, device=device):
            perturbed = changed.run(inputs=moved)
        worst = max(worst, _distance(perturbed, exact, tolerance, is_scaled=is_scaled))
    return worst * UNKNOWN if known.inexact_because else worst


def _moved(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    if not tensor.is_floating_point():
        return tensor
    sign = torch.rand(tensor.shape, generator=generator, device=tensor.device).sub_(0.5).sign_()
    # A whole unit: half of one would be rounded away.
    unit = torch.finfo(tensor.dtype).eps
    return (tensor.double() * (1.0 + unit * sign.double())).to(tensor.dtype)


def _distance(
    actual: Sequence[torch.Tensor],
    exact: Sequence[torch.Tensor],
    tolerance: Tolerance,
    *,
    is_scaled: bool,
) -> float:
    worst = 0.0
    for a, e in zip(actual, exact, strict=True):
        if not a.is_floating_point() or not a.numel():
            if not torch.equal(a, e.to(a.dtype)):
                return float("inf")  # an index that rounding decides
            continue
        error = (a.double() - e.double()).abs_().reshape(group_shape(tuple(e.shape)))
        allowed = tolerance.rtol * e.double().abs().reshape(error.shape)
        scale = group_scale(e).double()[:, None] if is_scaled else 1.0
        ratio = error / (allowed + tolerance.atol * scale)
        worst = max(worst, float(ratio.nan_to_num_(nan=0.0).max()))
    return worst
