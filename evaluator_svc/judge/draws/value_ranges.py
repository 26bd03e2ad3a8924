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
from evaluator_svc.judge.draws.changed_values import CHANGES, few, large, outliers
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
_CANCELLING: Final = (Distribution.OFFSET, Distribution.OUTLIERS, Distribution.FEW)
_CANCELLING_FACTOR: Final = {torch.float32: 32.0}
"""Variance as mean of squares less square of mean is honest in float32, and so are sums about an
element of the row: at an offset of 16, or with an outlier of 256 or terms of 500 times the mean,
they lose 8 bits, and a shortcut through 16 bits is still worse."""
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
    Distribution.FEW,
)
"""Equal values, among which a kernel may take another index than the reference does."""
_NOISE_SEEDS: Final = (1, 2)
_BY_ELEMENT: Final = (
    Distribution.SPARSE,
    Distribution.SIGNS,
    Distribution.MAGNITUDES,
    Distribution.INTEGERS,
    Distribution.POWERS,
    Distribution.OUTLIERS,
    Distribution.FEW,
)
"""Each element changes in a way of its own, which breaks the pattern of a table."""
_SIGNED: Final = (Distribution.LARGE, Distribution.OUTLIERS)
"""They ask which signs the reference is defined on."""
_OTHERS_FACTOR: Final = 2.0
"""Times the factors found on a smaller workload, where they are not found out anew."""


def in_range(
    prepared: PreparedWorkload, input_set: InputSet, distribution: Distribution
) -> InputSet:
    """Return a copy of `input_set`, a draw of `prepared`, whose inputs are of `distribution`."""
    if distribution in _SIGNED and prepared.large_sign is None:
        prepared.large_sign = _large_sign(prepared)
    kept = [name in prepared.task.constants for name in input_set.arguments.names]
    if distribution in _BY_ELEMENT:
        # Tables of sines and the like repeat themselves in some pattern, which single places break.
        kept = [a or b for a, b in zip(kept, prepared.fixed_inputs, strict=True)]
    change = _change_of(distribution, prepared.large_sign or 1.0)
    if distribution is Distribution.FEW:
        return _one_changed(input_set, change, kept)
    inputs = [
        tensor if is_kept else _where_free(tensor, change)
        for tensor, is_kept in zip(input_set.inputs, kept, strict=True)
    ]
    return input_set.with_values(inputs, input_set.state)


def _change_of(distribution: Distribution, sign: float) -> Callable[[torch.Tensor], torch.Tensor]:
    if distribution is Distribution.LARGE:
        return partial(large, sign=sign)
    if distribution is Distribution.OUTLIERS:
        return partial(outliers, any_sign=sign < 0)
    return few if distribution is Distribution.FEW else CHANGES[distribution]


def _one_changed(
    input_set: InputSet, change: Callable[[torch.Tensor], torch.Tensor], kept: Sequence[bool]
) -> InputSet:
    """Return a set of which the largest input that may be changed is; the seed tells of equals."""
    sizes = [0 if is_kept else t.numel() for t, is_kept in zip(input_set.inputs, kept, strict=True)]
    count, inputs = len(sizes), list(input_set.inputs)
    start = input_set.seed % max(count, 1)
    for place in sorted(range(count), key=lambda p: (-sizes[p], (p - start) % count)):
        old = inputs[place]
        inputs[place] = _where_free(old, change) if sizes[place] else old
        if inputs[place] is not old:
            break
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
    ordinary = prepared.input_set(PREPARATION_SEED)
    inputs = [_where_free(tensor, partial(large, sign=-1.0)) for tensor in ordinary.inputs]
    turned = ordinary.with_values(inputs, ordinary.state)
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

    On the smallest workload, a held-out one if there is any, and on every one that is timed. Found
    out on the smallest ones; where a workload is too large for the copies that this takes, and on
    further ones that are timed, with twice the factors.

    Args:
        prepared: All workloads of a task.
        tolerance: What candidates are held to on ordinary inputs.
        seed: Of the inputs that the reference is tried on.
    """
    found: dict[str, tuple[ValueRange, ...]] = {}
    known: tuple[ValueRange, ...] = ()
    for item in _smallest(prepared):
        ranges = _doubled(known)
        if not item.is_large:
            ordinary = item.input_set(seed)
            tried = (_value_range(item, ordinary, which, tolerance) for which in Distribution)
            known = ranges = tuple(value_range for value_range in tried if value_range)
        found[item.workload.name] = ranges
    binding = _doubled([value_range for value_range in known if value_range.is_binding])
    for item in _fitting(prepared):
        if not item.workload.held_out:
            found.setdefault(item.workload.name, binding)
    return {workload: ranges for workload, ranges in found.items() if ranges}


def _doubled(ranges: Sequence[ValueRange]) -> tuple[ValueRange, ...]:
    return tuple(replace(r, factor=_OTHERS_FACTOR * r.factor) for r in ranges)


def _fitting(prepared: Sequence[PreparedWorkload]) -> list[PreparedWorkload]:
    """Return the workloads with floating-point inputs that unusual ones can be made of."""
    return [
        item
        for item in prepared
        if (has_ranges_size(item.sizes) or item.is_repeatable)
        and any(t.role is TensorRole.INPUT and "float" in t.dtype for t in item.tensors)
    ]


def _smallest(prepared: Sequence[PreparedWorkload]) -> list[PreparedWorkload]:
    """Return the smallest workload, a held-out one if there is any, and the smallest timed one."""
    order = sorted(
        _fitting(prepared), key=lambda item: (not item.workload.held_out, item.size_bytes)
    )
    timed = [item for item in order if not item.workload.held_out]
    return list(dict.fromkeys((*order[:1], *timed[:1])))


def _value_range(
    prepared: PreparedWorkload,
    ordinary: InputSet,
    distribution: Distribution,
    tolerance: Tolerance,
) -> ValueRange | None:
    """Return how candidates are held to a distribution; None where the reference is not defined."""
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
        factor = needed_factor(changed, distribution, tolerance)
        is_ambiguous = distribution in _TIED and any(not o.is_floating_point() for o in expected)
    except TaskInvalidError:
        return None
    if factor is None:
        return None
    return ValueRange(distribution=distribution, factor=factor, is_binding=not is_ambiguous)


def needed_factor(
    changed: InputSet, distribution: Distribution, tolerance: Tolerance
) -> float | None:
    """Return what the tolerance is to be multiplied by on inputs of a distribution.

    None where the reference is not defined well enough there to hold anybody to it.

    Raises:
        TaskInvalidError: the reference raises.
    """
    dtype, least = changed.module.rounding, _USUAL_FACTOR
    if distribution in _CANCELLING:
        least = _CANCELLING_FACTOR.get(dtype, least)
    is_derived = changed.module.task.tolerance is None
    most = max(CEILING[dtype] / tolerance.rtol, 1.0) if is_derived else _MOST_FACTOR
    needed = SAFETY[dtype] * _noise(changed, changed.expected(), tolerance)
    if needed > most:
        return None
    return float(f"{max(needed, min(least, most)):.2g}")


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
