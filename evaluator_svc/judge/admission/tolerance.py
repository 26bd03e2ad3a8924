"""The automatic tolerance: a safe multiple of the rounding noise of a reordered evaluation.

The reference is computed in float64, then in its own formats, once as it stands and twice with
every operator's result moved by up to one rounding error of its format (Monte Carlo arithmetic),
which is what another order of the same operations does. Where float64 is not possible, the
reference's own result is used instead, and the tolerance is wider. In tasks of float32 the error of
products whose operands are split into two parts of bfloat16 counts too, and that of TF32 where it
is allowed. `answer_check.py` checks that no trivial answer passes with the result.
"""

from collections.abc import Sequence
from typing import Final

import torch

from evaluator_svc.judge.comparison.batch_slice import BatchSlice, batch_slice, is_independent
from evaluator_svc.judge.comparison.exact_reference import exact_or_own
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.reference.cut_operands import (
    CUT_SAFETY,
    SPLIT_LOST_BITS,
    TF32_CEILING,
    TF32_LOST_BITS,
    CutOperands,
)
from evaluator_svc.judge.tensors.rounding_noise import (
    CEILING,
    SAFETY,
    UNKNOWN,
    RoundingNoise,
    one_run_tells,
)
from evaluator_svc.judge.tensors.scales import cached_elements, group_scale, groups_of, row_chunks
from kernel_foundry.domain.admission import ToleranceDerivation
from kernel_foundry.errors import TaskInvalidError

_FLOOR: Final = {
    torch.float64: 1e-10,
    torch.float32: 5e-5,
    torch.float16: 4e-3,
    torch.bfloat16: 3e-2,
    torch.float8_e4m3fn: 0.13,
    torch.float8_e5m2: 0.26,
}
"""Least tolerance: room for own exp and erf of float32 accuracy, for rounding to 16 bits a few
times, for a neighbour among 8 bits; far less than what float16 or TF32 inside a float32 task costs
(1e-3)."""

_SPLIT_CEILING: Final = 1e-4
"""Most that is granted for the sake of split operands: half of what a product in TF32 costs."""

_WHOLE_ELEMENTS: Final = 1 << 30
"""Elements of inputs and outputs up to which all of them are computed in float64: 8 GB."""

_ROW_ELEMENTS: Final = 1 << 26
"""About as many elements are computed of a larger batch; the noise of so many is that of all."""

_NOISE_SEEDS: Final = (1, 2)


def measure(
    sets: Sequence[InputSet],
    workload: str = "",
    *,
    rounding: torch.dtype | None = None,
    enough: float = 0.0,
) -> ToleranceDerivation:
    """Return what the tolerance of outputs like those of `sets` is derived from.

    Args:
        sets: What the reference runs on.
        workload: Its name.
        rounding: Of those outputs alone that round to this format; None: of all.
        enough: A tolerance; noise that needs far less is measured in one run alone.
    """
    dtype = rounding or sets[0].module.rounding
    has_tf32 = sets[0].module.allows_tf32
    sets = [_fitting(input_set) for input_set in sets]
    exact = [exact_or_own(input_set) for input_set in sets]
    inexact_because = next((e.inexact_because for e in exact if e.inexact_because), "")
    safety = SAFETY[dtype] * (UNKNOWN if inexact_because else 1.0)
    noise = max(
        _rounding_noise(s, e.outputs, rounding, enough / safety)
        for s, e in zip(sets, exact, strict=True)
    )
    return ToleranceDerivation(
        source="measured",
        noise=noise,
        safety=safety,
        floor=_FLOOR[dtype],
        ceiling=CEILING[dtype],
        tf32_noise=max(tf32_noise(input_set) for input_set in sets) if has_tf32 else 0.0,
        split_noise=max(split_noise(s) for s in sets) if dtype is torch.float32 else 0.0,
        workload=workload,
        inexact_because=inexact_because,
    )


def floor_of(rounding: torch.dtype) -> float:
    """Return the least tolerance of results that round to a format."""
    return _FLOOR[rounding]


def granted(derivation: ToleranceDerivation) -> float:
    """Return the tolerance that follows from a derivation, in two digits."""
    bound = derivation.safety * derivation.noise
    split = min(CUT_SAFETY * derivation.split_noise, _SPLIT_CEILING)
    bound = min(max(bound, derivation.floor, split), derivation.ceiling)
    return float(f"{max(bound, _tf32_bound(derivation)):.1e}")


def least(derivation: ToleranceDerivation) -> float:
    """Return the least tolerance that lets every honest order of evaluation pass."""
    return max(derivation.safety * derivation.noise, _tf32_bound(derivation))


def _tf32_bound(derivation: ToleranceDerivation) -> float:
    return min(CUT_SAFETY * derivation.tf32_noise, TF32_CEILING)


def tf32_noise(input_set: InputSet) -> float:
    """Return how far TF32 moves the outputs, in the units of the tolerance.

    Both as PyTorch uses it here, which may be in no product of this task, and as a candidate may
    use it in each of them.
    """
    used = _distance(input_set.run(), input_set.expected())
    return max(_cut_noise(input_set, TF32_LOST_BITS), used)


def split_noise(input_set: InputSet) -> float:
    """Return how far operands in two parts of bfloat16 move the outputs, in the same units."""
    return _cut_noise(input_set, SPLIT_LOST_BITS)


def _cut_noise(input_set: InputSet, lost_bits: int) -> float:
    cut = CutOperands(lost_bits)
    with cut:
        outputs = input_set.run(dtype=torch.float32)
    return _distance(outputs, input_set.expected()) if cut.has_cut else 0.0


def _fitting(input_set: InputSet) -> InputSet:
    """Return the set, or some rows of its batch where a float64 copy of it is large.

    Only where the reference gives the same rows when it sees no others.
    """
    inputs, outputs = input_set.inputs, input_set.expected()
    if sum(tensor.numel() for tensor in (*inputs, *outputs)) <= _WHOLE_ELEMENTS:
        return input_set
    rows = batch_slice(outputs, inputs, elements=_ROW_ELEMENTS, seed=input_set.seed)
    if rows is None or not _are_independent(rows, input_set, outputs):
        return input_set
    return input_set.with_values(rows.inputs(input_set), input_set.state)


def _are_independent(
    rows: BatchSlice, input_set: InputSet, outputs: Sequence[torch.Tensor]
) -> bool:
    try:
        floor = _FLOOR[input_set.module.rounding]
        return is_independent(rows, input_set, outputs, tolerance=floor)
    except TaskInvalidError:
        return False


def _rounding_noise(
    input_set: InputSet,
    exact: Sequence[torch.Tensor],
    rounding: torch.dtype | None,
    enough: float,
) -> float:
    formats = input_set.module.output_roundings
    chosen = [i for i in range(len(exact)) if rounding is None or formats[i] is rounding]

    def distance(outputs: Sequence[torch.Tensor]) -> float:
        return _distance([outputs[i] for i in chosen], [exact[i] for i in chosen])

    noise = distance(input_set.expected())
    for seed in _NOISE_SEEDS:
        with RoundingNoise(seed=seed, device=input_set.module.device):
            perturbed = input_set.run()
        noise = max(noise, distance(perturbed))
        if one_run_tells(exact, noise, enough):
            break
    return noise


def _distance(actual: Sequence[torch.Tensor], exact: Sequence[torch.Tensor]) -> float:
    worst = 0.0
    for a, e in zip(actual, exact, strict=True):
        if not a.is_floating_point() or not a.numel():
            continue
        groups = groups_of(tuple(e.shape))
        scale, row = group_scale(e).double(), 0
        count = cached_elements(a.device)
        parts = (row_chunks(groups.lines(tensor), count) for tensor in (a, e))
        for x, y in zip(*parts, strict=True):
            error = (x.double() - y.double()).abs_()
            error /= y.double().abs() + groups.scale_of(scale, row, row + len(y))
            row += len(y)
            worst = max(worst, float(error.nan_to_num_(nan=0.0, posinf=0.0).max()))
    return worst
