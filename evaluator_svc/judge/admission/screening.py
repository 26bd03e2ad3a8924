"""Whether a reference can be compared with at all: repeatable, finite, of fixed shapes.

Refusals and warnings are sentences for the user. Knows nothing of what passes as an answer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import torch

from evaluator_svc.judge.draws.input_set import InputSet
from evaluator_svc.judge.memory.judge_memory import JudgeMemory
from evaluator_svc.judge.reference.formats import computable, same_values
from evaluator_svc.judge.verdict.compare import ExpectedOutput, expect, matches
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
    sets: Sequence[InputSet],
    tolerance: Tolerance,
    *,
    is_scaled: bool,
    where: str,
    memory: JudgeMemory,
) -> Screening:
    """Return what speaks against a workload, judged by at least two input sets.

    Args:
        sets: Input sets of different seeds.
        tolerance: What candidates will be held to.
        is_scaled: Whether it is in units of each row's scale.
        where: Name of the workload, for the messages.
        memory: Where the sets lie.
    """
    found = Screening()
    ready = partial(expect, is_scaled=is_scaled, memory=memory)
    if not _is_repeatable(sets[0], tolerance, found, ready):
        return found
    expected = [tuple(map(ready, input_set.expected())) for input_set in sets]
    shapes = [[tuple(e.tensor.shape) for e in outputs] for outputs in expected]
    if any(other != shapes[0] for other in shapes):
        found.refusals.append(f"{where}: the outputs' shapes depend on the inputs' values")
        return found
    _check_values(expected[0], found)
    return found


def _is_repeatable(
    input_set: InputSet,
    tolerance: Tolerance,
    found: Screening,
    ready: Callable[[torch.Tensor], ExpectedOutput],
) -> bool:
    first = input_set.run()
    expected = tuple(map(ready, first))
    if not _all_match(input_set.run(random_seed=input_set.seed + 1), expected, tolerance):
        found.refusals.append(
            "the reference is random: the same inputs give another output under another seed"
            " (dropout? set `training: false` in the sidecar)"
        )
        return False
    again = input_set.run()
    if not _all_match(again, expected, tolerance):
        found.refusals.append("the reference is not deterministic: two runs differ")
        return False
    if not all(same_values(a, b) for a, b in zip(first, again, strict=True)) and not any(
        bool(computable(output).isnan().any()) for output in first
    ):
        found.warnings.append("the reference is not deterministic bit by bit")
    return True


def _check_values(outputs: Sequence[ExpectedOutput], found: Screening) -> None:
    for index, output in enumerate(outputs):
        count = output.tensor.numel()
        if not count:
            found.refusals.append(f"output {index} is empty")
            continue
        share = float((~computable(output.tensor).isfinite()).float().mean())
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
        matches(a, e, tolerance) for a, e in zip(actual, expected, strict=True)
    )
