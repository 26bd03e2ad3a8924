"""Finds how well the reference is defined on unusual values, output by output.

Values become unusual in `judge/unusual_values`.
"""

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import torch

from evaluator_svc.judge.comparison.exact_reference import exact_or_own
from evaluator_svc.judge.comparison.index_comparison import PlacedOutputs, placed_outputs
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.reference.cut_operands import (
    CUT_SAFETY,
    TF32_CEILING,
    TF32_LOST_BITS,
    CutOperands,
)
from evaluator_svc.judge.reference.task_module import TaskModule
from evaluator_svc.judge.tensors.rounding_noise import (
    CEILING,
    COPYING,
    SAFETY,
    UNKNOWN,
    RoundingNoise,
    moved_by_units,
    one_run_tells,
)
from evaluator_svc.judge.tensors.scales import (
    cached_elements,
    group_scale,
    groups_of,
    row_chunks,
)
from evaluator_svc.judge.tensors.structure import holds_classes
from evaluator_svc.judge.tensors.tensor_parts import all_finite, none_is_nan
from evaluator_svc.messages.distribution_traits import Trait, has
from kernel_foundry.domain.admission import Distribution
from kernel_foundry.domain.task import Tolerance

USUAL_FACTOR: Final = 4.0
_CLOSE_FACTOR: Final = 16.0
"""Where rows are close to each other: of products that cancel by chance more is lost than of the
differences that count there, and what comes of squares is off by hundreds of tolerances."""
_CANCELLING_FACTOR: Final = {torch.float32: 32.0}
"""Variance as mean of squares less square of mean is honest in float32, and so are sums about an
element of the row: at an offset of 16, or with an outlier of 256 or terms of 500 times the mean,
they lose 8 bits, and a shortcut through 16 bits is still worse."""
_MOST_FACTOR: Final = 64.0
"""Where the tolerance was given by hand."""
_NOISE_SEEDS: Final = (1, 2)
_COARSE_UNITS: Final = float(1 << 12)
"""Units in the last place that results are moved by: whole numbers that stay follow from no result,
but from comparisons of inputs, which a kernel has to make as they are."""
_NONE_PLACED: Final = PlacedOutputs(exact=frozenset(), following=frozenset())


@dataclass(frozen=True, slots=True, kw_only=True)
class NeededFactor:
    """The tolerance that a reference allows on unusual values."""

    factor: float
    """Factor of the task's tolerance."""
    left_out: tuple[int, ...]
    """Indices of outputs that the reference does not define well enough to check them."""
    tied: tuple[int, ...] = ()
    """Indices of outputs of places, among which equal values leave a choice; they are compared by
    nothing else."""

    def joined(self, other: "NeededFactor | None") -> "NeededFactor":
        """Return what is allowed on either of two draws; None: the other one is never checked."""
        if other is None:
            return self
        return NeededFactor(
            factor=max(self.factor, other.factor),
            left_out=tuple(sorted({*self.left_out, *other.left_out})),
            tied=tuple(sorted({*self.tied, *other.tied})),
        )


def cancelling_factor(module: TaskModule, tolerance: Tolerance) -> float:
    """Return the factor of the tolerance if sums may lose most of their digits."""
    least = _CANCELLING_FACTOR.get(module.rounding, USUAL_FACTOR)
    is_derived = module.task.tolerance is None
    return min(least, most_factor(module, tolerance) if is_derived else _MOST_FACTOR)


def needed_factor(
    changed: InputSet, distribution: Distribution | None, tolerance: Tolerance
) -> NeededFactor | None:
    """Return the factor of the tolerance on inputs of a distribution (None: ordinary inputs).

    Returns None if the reference defines no output well enough there to check it.

    Raises:
        TaskInvalidError: the reference raises.
    """
    dtype = changed.module.rounding
    least = 1.0 if distribution is None else USUAL_FACTOR
    if has(distribution, Trait.CANCELS):
        least = _CANCELLING_FACTOR.get(dtype, least)
    if distribution is Distribution.CLOSE:
        least = _CLOSE_FACTOR
    is_derived = changed.module.task.tolerance is None
    most = most_factor(changed.module, tolerance) if is_derived else _MOST_FACTOR
    expected = changed.expected()
    whole = [i for i, output in enumerate(expected) if not output.is_floating_point()]
    placed = _NONE_PLACED
    if whole and changed.module.names_places:
        placed = placed_outputs(changed)
    has_ties = has(distribution, Trait.TIES)
    is_tied = has_ties and not placed.following.isdisjoint(whole)
    granted = min(least, most)
    noise = _noise(
        changed,
        expected,
        tolerance,
        distribution=distribution,
        granted=granted,
        # Beside whole numbers a float may be what one of several places holds.
        breaks_ties=has_ties and bool(placed.following) and len(whole) < len(expected),
        following=placed.following,
    )
    # They are compared by what they look up: what is moved there says nothing.
    noise = [0.0 if i in placed.exact else needed for i, needed in enumerate(noise)]
    held = [needed for needed in noise if needed <= most]
    if not held:
        return None
    return NeededFactor(
        factor=float(f"{max(*held, granted):.2g}"),
        left_out=tuple(i for i, needed in enumerate(noise) if needed > most),
        tied=tuple(i for i in whole if is_tied and i in placed.following - placed.exact),
    )


def most_factor(module: TaskModule, tolerance: Tolerance) -> float:
    """Return the largest factor that a derived tolerance is multiplied by."""
    ceiling = max(CEILING[module.rounding], TF32_CEILING if module.allows_tf32 else 0.0)
    return max(ceiling / tolerance.rtol, 1.0)


def _noise(
    changed: InputSet,
    expected: Sequence[torch.Tensor],
    tolerance: Tolerance,
    *,
    distribution: Distribution | None,
    granted: float,
    breaks_ties: bool,
    following: Container[int],
) -> list[float]:
    """Return a safe multiple of each output's largest error in a reordered run, in tolerances.

    Where TF32 is allowed, of what it costs too, in each product.

    What is unusual, inputs or parameters, is moved by a rounding error too: what a kernel computes
    of it in its own way cannot be better defined than that; what it only compares can. Numbers of
    ABSOLUTE stay, which all formats hold with their differences, those of BOUNDS, which are
    compared with one, and labels of two classes: a loss takes none beyond one. Infinity for what is
    not finite and for whole numbers that differ. Where ties are broken zeros move too: what is
    looked up at the place of one of several maxima is another then. One run is enough where its
    errors are far below what is granted anyway.
    """
    may_be_endless = has(distribution, Trait.ENDLESS)
    if all(o.is_floating_point() and tolerance.is_exact(i) for i, o in enumerate(expected)):
        # Values are moved and nothing is rounded: another order of operations gives the same.
        distances = _Distances(changed, expected, tolerance, may_be_endless=may_be_endless)
        return distances.of(expected)
    known = exact_or_own(changed)
    exact = known.outputs
    measure = _Distances(changed, exact, tolerance, may_be_endless=may_be_endless).of
    worst = own = measure(expected)
    device = changed.module.device
    scale = UNKNOWN if known.inexact_because else 1.0
    cut = [0.0] * len(expected)
    if changed.module.allows_tf32:
        with CutOperands(TF32_LOST_BITS):
            cut = measure(changed.run(dtype=torch.float32), safety=CUT_SAFETY)
    equals_alike = changed.is_stepped and not breaks_ties
    for seed in _NOISE_SEEDS:
        generator = torch.Generator(device).manual_seed(seed)
        move = partial(
            moved_by_units,
            generator=generator,
            breaks_ties=breaks_ties,
            equals_alike=equals_alike,
        )
        moved = list(changed.inputs)
        if not has(distribution, Trait.AS_DRAWN):
            moved = [t if holds_classes(t) and not breaks_ties else move(t) for t in moved]
        state = changed.state
        if has(distribution, Trait.OF_PARAMETERS):
            state = {path: move(tensor) for path, tensor in state.items()}
        kept = COPYING if has(distribution, Trait.AS_DRAWN) else frozenset[str]()
        with RoundingNoise(seed=seed, device=device, kept=kept, equals_alike=equals_alike):
            perturbed = changed.run(inputs=moved, state=state)
        worst = [max(pair) for pair in zip(worst, measure(perturbed), strict=True)]
        if one_run_tells(expected, scale * max(worst), granted):
            break
    whole = [index for index, output in enumerate(expected) if not output.is_floating_point()]
    if not has(distribution, Trait.TIES):
        whole = [index for index in whole if worst[index] > own[index]]
    else:
        whole = [index for index in whole if index not in following]  # nobody is held to those
    compared = _compared(changed, expected, whole)
    for index in whole:
        worst[index] = own[index] if index in compared else math.inf
    return [max(needed * scale, of_cut) for needed, of_cut in zip(worst, cut, strict=True)]


def _compared(
    changed: InputSet, expected: Sequence[torch.Tensor], outputs: Sequence[int]
) -> list[int]:
    """Return those of some outputs of whole numbers that no rounding has a part in."""
    if not outputs:
        return []
    device = changed.module.device
    # What becomes of NaN as a whole number is left open.
    with RoundingNoise(seed=_NOISE_SEEDS[0], device=device, units=_COARSE_UNITS, replaces_nan=True):
        coarse = changed.run()
    return [index for index in outputs if torch.equal(coarse[index], expected[index])]


def _are_alike_endless(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether the same elements are infinite, with the same signs, and none is NaN."""
    return none_is_nan(one) and all(
        torch.equal(one == end, other == end) for end in (torch.inf, -torch.inf)
    )


class _Distances:
    """How far outputs are from the exact ones, each in tolerances.

    Args:
        changed: Whose outputs they are.
        exact: The exact ones.
        tolerance: That of ordinary inputs.
        may_be_endless: Whether infinities are no farther from each other than equal numbers.
    """

    def __init__(
        self,
        changed: InputSet,
        exact: Sequence[torch.Tensor],
        tolerance: Tolerance,
        *,
        may_be_endless: bool = False,
    ) -> None:
        self._may_be_endless = may_be_endless
        self._changed = changed
        self._exact = exact
        self._tolerance = tolerance
        self._scales: dict[int, torch.Tensor] = {}
        """Of the outputs asked for so far, one for each group of elements."""

    def of(self, actual: Sequence[torch.Tensor], safety: float | None = None) -> list[float]:
        """Return a safe multiple of the largest distance of each output's elements.

        Infinity where it has no limit.

        Args:
            actual: The outputs.
            safety: The multiple; None: that of rounding errors of an output's format.
        """
        formats = self._changed.module.output_roundings
        return [
            (SAFETY[formats[index]] if safety is None else safety) * self._distance(index, a, e)
            for index, (a, e) in enumerate(zip(actual, self._exact, strict=True))
        ]

    def _distance(self, index: int, a: torch.Tensor, e: torch.Tensor) -> float:
        if not a.is_floating_point() or not a.numel():
            # An index that rounding decides is as far as can be.
            return 0.0 if torch.equal(a, e.to(a.dtype)) else math.inf
        if not all_finite(a) and not (self._may_be_endless and _are_alike_endless(a, e)):
            return math.inf
        if self._tolerance.is_exact(index):
            return 0.0  # nothing is rounded there
        own, groups = self._tolerance.of(index), groups_of(tuple(e.shape))
        count, start, largest = cached_elements(a.device), 0, 0.0
        is_scaled = self._changed.module.task.tolerance is None
        if is_scaled and index not in self._scales:
            self._scales[index] = group_scale(e).double()
        exact, actual = groups.lines(e), groups.lines(a)
        for part, other in zip(row_chunks(exact, count), row_chunks(actual, count), strict=True):
            stop = start + len(part)
            scale = groups.scale_of(self._scales[index], start, stop) if is_scaled else 1.0
            allowed = own.rtol * part.double().abs() + own.atol * scale
            ratio = (other.double() - part.double()).abs_() / allowed
            largest = max(largest, float(ratio.nan_to_num_(nan=0.0).max()))
            start = stop
        return largest
