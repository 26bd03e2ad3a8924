"""What speaks against a task: outputs that say nothing, and candidates that must not pass.

Refusals and warnings are sentences for the user. Knows nothing of baselines and graphs.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import torch

from evaluator_svc.judge.compare import ExpectedOutput, expect, matches
from evaluator_svc.judge.input_set import InputSet
from evaluator_svc.judge.judge_memory import JudgeMemory
from kernel_foundry.domain.task import Tolerance

_MAX_NON_FINITE_SHARE: Final = 1e-3
"""More NaN or infinity than this leaves too little to compare."""

_EACH_PARAMETER_SECONDS: Final = 5.0
"""Budget for asking of every single parameter whether it matters."""


@dataclass(slots=True)
class Screening:
    """What was found, as it is found."""

    refusals: list[str] = field(default_factory=list)
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
    if found.refusals:
        return found
    if _all_match(sets[1].expected(), expected[0], tolerance):
        found.refusals.append(
            f"{where}: the output is constant: other inputs and parameters change it by less"
            " than the tolerance"
        )
        return found
    _check_inputs(sets, expected[0], tolerance, found)
    _check_parameters(sets, expected[0], tolerance, found)
    _check_trivial(sets, expected[0], tolerance, found, where)
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
    if not all(torch.equal(a, b) for a, b in zip(first, again, strict=True)) and not any(
        bool(output.isnan().any()) for output in first
    ):
        found.warnings.append("the reference is not deterministic bit by bit")
    return True


def _check_values(outputs: Sequence[ExpectedOutput], found: Screening) -> None:
    for index, output in enumerate(outputs):
        count = output.tensor.numel()
        if not count:
            found.refusals.append(f"output {index} is empty")
            continue
        share = float((~output.tensor.isfinite()).float().mean())
        if share > _MAX_NON_FINITE_SHARE:
            found.refusals.append(
                f"output {index} is NaN or infinite in {share:.1%} of its elements"
            )
        elif share:
            found.warnings.append(f"output {index} holds NaN or infinity in a few elements")


def _check_inputs(
    sets: Sequence[InputSet],
    expected: Sequence[ExpectedOutput],
    tolerance: Tolerance,
    found: Screening,
) -> None:
    first, second = sets[0], sets[1]
    idle: list[str] = []
    for index, name in enumerate(first.arguments.names):
        other = second.inputs[index]
        if torch.equal(other, first.inputs[index]):
            found.warnings.append(f"get_inputs() gives the same {name!r} under every seed")
            continue
        inputs = [*first.inputs]
        inputs[index] = other
        if _all_match(first.run(inputs=inputs), expected, tolerance):
            idle.append(name)
    if idle and len(idle) == len(first.inputs):
        found.refusals.append(f"the output hardly depends on any input ({', '.join(idle)})")
    else:
        found.warnings += [
            f"the output hardly depends on input {name!r}: a kernel that ignores it passes"
            for name in idle
        ]


def _check_parameters(
    sets: Sequence[InputSet],
    expected: Sequence[ExpectedOutput],
    tolerance: Tolerance,
    found: Screening,
) -> None:
    first, second = sets[0], sets[1]
    paths = [path for path, _ in first.module.model.named_parameters()]
    if not paths:
        return
    other = {path: second.state[path] for path in paths}
    if _all_match(first.run(state=first.state | other), expected, tolerance):
        found.warnings.append(
            "the output hardly depends on the weights: a kernel that ignores them passes"
        )
        return
    deadline = time.monotonic() + _EACH_PARAMETER_SECONDS
    for path in paths if len(paths) > 1 else ():
        if time.monotonic() > deadline:
            return
        state = first.state | {path: second.state[path]}
        if _all_match(first.run(state=state), expected, tolerance):
            found.warnings.append(
                f"the output hardly depends on parameter {path!r}: a kernel that ignores it passes"
            )


def _check_trivial(
    sets: Sequence[InputSet],
    expected: Sequence[ExpectedOutput],
    tolerance: Tolerance,
    found: Screening,
    where: str,
) -> None:
    """Refuse a task that a lazy candidate would pass; warn when only its inputs are to blame."""
    for index, output in enumerate(expected):
        which = f" for output {index}" if len(expected) > 1 else ""
        for name, actual in trivial_candidates(sets, index):
            if not matches(actual, output, tolerance):
                continue
            if matches(actual, output, Tolerance(rtol=0.0, atol=0.0)):
                found.warnings.append(
                    f"{where}: {name} is right{which} on what get_inputs() gives: choose inputs"
                    " on which the operator does something"
                )
            else:
                found.refusals.append(
                    f"{where}: {name} would pass as a candidate{which}: the tolerance (rtol"
                    f" {tolerance.rtol:g}, atol {tolerance.atol:g}) is too loose for the output"
                )


def trivial_candidates(sets: Sequence[InputSet], index: int) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield (name, values) of what a lazy candidate would write for output `index`."""
    output, other = sets[0].expected()[index], sets[1].expected()[index]
    yield "an output of zeros", torch.zeros_like(output)
    yield "an output of ones", torch.ones_like(output)
    if output.is_floating_point():
        mean = float(other.float().mean())
        yield "the mean of another output everywhere", torch.full_like(output, mean)
    for name, value in zip(sets[0].arguments.names, sets[0].inputs, strict=True):
        if value.numel() == output.numel():
            yield f"a copy of input {name!r}", value.reshape(output.shape).to(output.dtype)


def _all_match(
    actual: Sequence[torch.Tensor], expected: Sequence[ExpectedOutput], tolerance: Tolerance
) -> bool:
    return len(actual) == len(expected) and all(
        matches(a, e, tolerance) for a, e in zip(actual, expected, strict=True)
    )
