"""On which distributions of unusual values candidates are tried, and with what tolerance.

The distributions are in `judge/unusual_values`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from evaluator_svc.judge.comparison.needed_factor import USUAL_FACTOR, needed_factor
from evaluator_svc.judge.comparison.task_check import accepts_reference
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload, keeping_sets
from evaluator_svc.judge.unusual_values.distributions import with_distribution
from evaluator_svc.messages.distribution_traits import Trait, has
from evaluator_svc.sizes.memory_needs import has_ranges_size
from kernel_foundry.domain.admission import Distribution, TensorRole, ValueRange
from kernel_foundry.domain.task import Tolerance
from kernel_foundry.errors import TaskInvalidError

_SMALL_BYTES: Final = 1 << 20
"""Inputs, parameters and outputs of a generated workload on which ranges are found out anew."""
_OTHERS_FACTOR: Final = 2.0
"""Times the factors found on a smaller workload, where they are not found out anew."""


def find_value_ranges(
    prepared: Sequence[PreparedWorkload], tolerance: Tolerance, seed: int
) -> dict[str, tuple[ValueRange, ...]]:
    """Return the unusual values on which candidates are tried, by workload.

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
            ordinary = item.shared_set(seed)
            known = ranges = tuple(_tried(item, ordinary, tolerance))
        found[item.workload.name] = ranges
    binding = _doubled([value_range for value_range in known if value_range.is_binding])
    for item in _fitting(prepared):
        if not item.workload.held_out:
            found.setdefault(item.workload.name, binding)
    return {workload: ranges for workload, ranges in found.items() if ranges}


def find_generated_ranges(
    generated: Sequence[PreparedWorkload],
    known: Sequence[ValueRange],
    tolerance: Tolerance,
    seed: int,
) -> dict[str, tuple[ValueRange, ...]]:
    """Return what candidates are tried on in generated workloads, by workload: what binds.

    Found out on the first of them if it is small; of others as of further ones that are timed.

    Args:
        generated: The workloads; candidates meet the first that they take.
        known: What was found on the smallest workload of the task's own.
        tolerance: As for `find_value_ranges`.
        seed: As for `find_value_ranges`.
    """
    found = {}
    for item in _fitting(generated):
        ranges = _doubled(known)
        if item is generated[0] and item.sizes.set_bytes <= _SMALL_BYTES:
            with keeping_sets([item]):
                ranges = tuple(_tried(item, item.shared_set(seed), tolerance))
        found[item.workload.name] = tuple(r for r in ranges if r.is_binding)
    return found


def _tried(
    prepared: PreparedWorkload, ordinary: InputSet, tolerance: Tolerance
) -> Iterator[ValueRange]:
    has_large_weights = False
    for distribution in Distribution:
        if distribution is Distribution.USUAL_WEIGHTS and has_large_weights:
            continue
        value_range = _value_range(prepared, ordinary, distribution, tolerance)
        if value_range is not None:
            has_large_weights |= distribution is Distribution.WEIGHTS
            yield value_range


def _of_check(distribution: Distribution) -> ValueRange:
    return ValueRange(distribution=distribution, factor=1.0, is_binding=True)


def _doubled(ranges: Sequence[ValueRange]) -> tuple[ValueRange, ...]:
    return tuple(replace(r, factor=_OTHERS_FACTOR * r.factor) for r in ranges)


def _fitting(prepared: Sequence[PreparedWorkload]) -> list[PreparedWorkload]:
    """Return the workloads with inputs or parameters that unusual ones can be made of."""
    return [
        item
        for item in prepared
        if (has_ranges_size(item.sizes) or item.is_repeatable)
        and (
            any(t.role is TensorRole.INPUT for t in item.tensors)
            or any(rule.is_free for rule in item.rules)
        )
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
    """Return how candidates are held to a distribution; None where nothing would come of it.

    The reference is not defined there, or works in a way to which it is nothing special.
    """
    is_of_floats = all(tensor.is_floating_point() for tensor in ordinary.inputs)
    # Of floats a few are tried alone, which tells as much of neighbours.
    if has(distribution, Trait.OF_LINES) and prepared.traits.is_pointwise and is_of_floats:
        return None
    try:
        changed = with_distribution(prepared, ordinary, distribution)
        if all(new is old for new, old in zip(changed.pristine, ordinary.pristine, strict=True)):
            return None
        if not changed.is_taken():
            return None
        if not prepared.task.compare:
            is_told = not has(distribution, Trait.REPORTED) and accepts_reference(
                changed, distribution
            )
            return _of_check(distribution) if is_told else None
        if distribution is Distribution.LEVEL:
            return ValueRange(distribution=distribution, factor=USUAL_FACTOR, is_binding=True)
        expected = changed.expected()
        if has(distribution, Trait.REPORTED):
            return ValueRange(distribution=distribution, factor=USUAL_FACTOR, is_binding=False)
        needed = needed_factor(changed, distribution, tolerance)
        if needed is not None and distribution is Distribution.WEIGHT_OUTLIERS:
            # Under every second seed they are columns.
            ordinary = prepared.shared_set(ordinary.seed + 1)
            changed = with_distribution(prepared, ordinary, distribution)
            needed = needed.joined(needed_factor(changed, distribution, tolerance))
    except TaskInvalidError:
        return None
    if needed is None:
        return None
    held = set(range(len(expected))).difference(needed.left_out, needed.tied)
    left_out = sorted({*needed.left_out, *needed.tied}) if held else needed.left_out
    return ValueRange(
        distribution=distribution,
        factor=needed.factor,
        is_binding=bool(held),
        left_out=tuple(left_out),
    )
