"""Steps that work row by row and can be one kernel: reductions, and what reads them in a row."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from generator_svc.recipes.plain.program import SCRATCH, KernelStep, Step
from generator_svc.recipes.plain.sizes import Shape, count_of
from generator_svc.recipes.plain.tensors import (
    ReducedTensor,
    ScannedTensor,
    StoredTensor,
    Tensor,
    reductions,
)

_MANY_ROWS, _SHORT_ROW = 256, 8192
"""A block works on a row alone: rows have to be as many, or so short that few blocks do."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RowStep:
    """Reductions of the same rows, whose results nobody else reads, and elements of these rows."""

    reduced: tuple[KernelStep, ...]
    last: KernelStep

    @property
    def target(self) -> StoredTensor:
        """What it stores."""
        return self.last.target


def joined(
    steps: Sequence[Step],
    reads: Mapping[StoredTensor, Sequence[StoredTensor]],
    is_shared: Callable[[KernelStep], bool],
) -> list[Step | RowStep]:
    """Return the steps with those that may be one kernel in one.

    Args:
        steps: In order.
        reads: What is read for each target.
        is_shared: Whether the threads of a block compute each element of a step together.
    """
    found: list[Step | RowStep] = []
    group: list[KernelStep] = []
    for step in steps:
        if isinstance(step, KernelStep) and is_shared(step):
            if group and not _has_rows_of(step, group[0]):
                found += group
                group = []
            group.append(step)
        elif group and isinstance(step, KernelStep) and _is_last(step, group, reads):
            found.append(RowStep(reduced=tuple(group), last=step))
            group = []
        else:
            found += [*group, step]
            group = []
    return [*found, *group]


def _has_rows_of(step: KernelStep, other: KernelStep) -> bool:
    one, two = (next(reductions(s.root)) for s in (step, other))
    return (
        one.kind == two.kind
        and _counts(one.shape) == _counts(two.shape)
        and _counts(one.loops) == _counts(two.loops)
    )


def _is_last(
    step: KernelStep,
    group: Sequence[KernelStep],
    reads: Mapping[StoredTensor, Sequence[StoredTensor]],
) -> bool:
    """Return whether `step` computes the elements of the rows that `group` reduces."""
    reduced: ReducedTensor = next(reductions(group[0].root))
    rows, length = _counts(reduced.shape), _counts(reduced.loops)
    if step.root.reduces or isinstance(step.root, ScannedTensor) or not reduced.shape:
        return False
    if max(rows) < _MANY_ROWS and max(length) > _SHORT_ROW:
        return False
    if _counts(step.root.shape) != [r * n for r, n in zip(rows, length, strict=True)]:
        return False
    inside: set[Tensor] = {step.target, *(s.target for s in group)}
    results = {s.target for s in group if s.target.name.startswith(SCRATCH)}
    readers = {t for t, read in reads.items() if not results.isdisjoint(read)}
    return len(results) == len(group) and step.target in readers and readers <= inside


def _counts(shape: Shape) -> list[int]:
    """Return the elements in each workload."""
    return list(count_of(shape).values) if shape else []
