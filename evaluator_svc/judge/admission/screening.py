"""Whether a reference can be compared with at all: repeatable, finite, of fixed shapes.

Without a comparison it may be random, and hold what is no number.
Refusals and warnings are sentences for the user.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import torch

from evaluator_svc.judge.comparison.compare import matches
from evaluator_svc.judge.draws.expected_output import ExpectedOutput, expect
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.memory.judge_memory import JudgeMemory
from evaluator_svc.judge.reference.formats import computable, same_values
from evaluator_svc.judge.tensors.scales import CHUNK_ELEMENTS
from kernel_foundry.domain.task import Tolerance

_MAX_NON_FINITE_SHARE: Final = 1e-3
"""More NaN or infinity than this leaves too little to compare."""


@dataclass(slots=True)
class Screening:
    """What was found, as it is found."""

    refusals: list[str] = field(default_factory=list)
    degeneracies: list[str] = field(default_factory=list)
    """Those of the refusals that a task can be judged in spite of."""
    warnings: list[str] = field(default_factory=list)


def screen(
    draws: Sequence[Callable[[], InputSet]],
    tolerance: Tolerance,
    *,
    is_scaled: bool,
    where: str,
    memory: JudgeMemory,
) -> Screening:
    """Return what speaks against a workload; of several sets, whether their shapes differ, too.

    One set is held at a time, with two of its outputs: a large workload takes most of a device.

    Args:
        draws: Give input sets of different seeds.
        tolerance: What candidates will be held to.
        is_scaled: Whether it is in units of each row's scale.
        where: Name of the workload, for the messages.
        memory: Where the sets lie.
    """
    found = Screening()
    ready = partial(expect, is_scaled=is_scaled, memory=memory)
    first = draws[0]()
    is_compared = first.module.task.compare
    if is_compared and not _is_repeatable(first, tolerance, found, ready):
        return found
    shapes = _shapes(first)
    _check_values(first.expected(), found, is_compared=is_compared)
    del first  # before another one is drawn
    if any(_shapes(draw()) != shapes for draw in draws[1:]):
        found.refusals.append(f"{where}: the outputs' shapes depend on the inputs' values")
    return found


def _shapes(input_set: InputSet) -> list[tuple[int, ...]]:
    return [tuple(output.shape) for output in input_set.expected()]


def _is_repeatable(
    input_set: InputSet,
    tolerance: Tolerance,
    found: Screening,
    ready: Callable[[torch.Tensor], ExpectedOutput],
) -> bool:
    first = input_set.own()
    expected = tuple(map(ready, first))
    reseeded = input_set.run(random_seed=input_set.seed + 1)
    if not _all_match(reseeded, expected, tolerance):
        refusal = "the reference is random: the same inputs give another output under another seed"
        if input_set.module.task.training:
            refusal += " (dropout? set `training: false` in the sidecar)"
        found.refusals.append(refusal)
        return False
    if _are_same(first, reseeded):
        return True
    again = input_set.run()
    if not _all_match(again, expected, tolerance):
        found.refusals.append("the reference is not deterministic: two runs differ")
        return False
    if not _are_same(first, again) and not any(
        bool(computable(part).isnan().any())
        for output in first
        for part in torch.split(output.view(-1), CHUNK_ELEMENTS)
    ):
        found.warnings.append("the reference is not deterministic bit by bit")
    return True


def _are_same(ones: Sequence[torch.Tensor], others: Sequence[torch.Tensor]) -> bool:
    return all(same_values(one, other) for one, other in zip(ones, others, strict=True))


def _check_values(outputs: Sequence[torch.Tensor], found: Screening, *, is_compared: bool) -> None:
    for index, output in enumerate(outputs):
        if not output.numel():
            found.refusals.append(f"output {index} is empty")
        if not output.numel() or not is_compared:
            continue
        parts = torch.split(output.view(-1), CHUNK_ELEMENTS)
        share = sum(int((~computable(p).isfinite()).sum()) for p in parts) / output.numel()
        if share > _MAX_NON_FINITE_SHARE:
            reason = f"output {index} is NaN or infinite in {share:.1%} of its elements"
            found.refusals.append(reason)
            found.degeneracies.append(reason)
        elif share:
            found.warnings.append(f"output {index} holds NaN or infinity in a few elements")


def _all_match(
    actual: Sequence[torch.Tensor], expected: Sequence[ExpectedOutput], tolerance: Tolerance
) -> bool:
    return len(actual) == len(expected) and all(
        matches(a, e, tolerance.of(i))
        for i, (a, e) in enumerate(zip(actual, expected, strict=True))
    )
