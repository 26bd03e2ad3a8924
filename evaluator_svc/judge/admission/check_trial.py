"""A trial of the task's own check: what it says of the reference's outputs, and of others.

A check that raises on the reference's outputs, or refuses them, is none. One that accepts what has
nothing to do with the inputs says little, and nothing at all where it stands alone.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import torch

from evaluator_svc.judge.admission.screening import Screening
from evaluator_svc.judge.comparison.task_check import refusal_of
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload
from evaluator_svc.judge.reference.formats import computable, same_values
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import TaskInvalidError

_TIME_SHARE: Final = 0.2
"""Of what a check may take, for the reference's own outputs: on a busy machine it takes longer, and
what it takes too long for is a wrong result."""

_ANOTHER_DRAW = "the outputs for other inputs"


def try_check(task: Task, prepared: Sequence[PreparedWorkload], seeds: Sequence[int]) -> Screening:
    """Return what speaks against the task's check, and against a task that has it alone.

    Args:
        task: The task; without a check nothing is found.
        prepared: Its workloads. Other outputs are tried on the smallest.
        seeds: Of two input sets.
    """
    found = Screening()
    if not task.check:
        return found
    for item in prepared:
        reference = item.shared_set(seeds[0])
        # The second call is the one that counts: the first may load libraries.
        said = refusal_of_own(reference) or refusal_of_own(reference, time_share=_TIME_SHARE)
        if said:
            found.refusals.append(
                f"{item.workload.name}: the reference's own outputs fail {task.check}(): {said}"
            )
    if not task.compare:
        found.warnings.append(
            f"{task.check}() alone tells which outputs are right: candidates are tried on unusual"
            " values only as far as it accepts the reference's outputs there, and the precision of"
            " theirs is not audited"
        )
    smallest = min(prepared, key=lambda item: item.size_bytes)
    if not found.refusals and smallest.is_large:
        found.warnings.append(
            f"{smallest.workload.name}: too large to try {task.check}() on outputs that come from"
            " no computation: add a smaller workload, to know that it accepts none of them"
        )
    elif not found.refusals:
        _try_others(task, smallest, seeds, found)
    return found


def refusal_of_own(reference: InputSet, *, time_share: float = 1.0) -> str:
    """Return what the task's check says of the reference's own outputs; "" where it accepts them.

    Raises:
        TaskInvalidError: the reference raises.
    """
    outputs = _outputs(reference)
    return _said(reference, outputs, outputs, time_share=time_share)


def _try_others(task: Task, item: PreparedWorkload, seeds: Sequence[int], found: Screening) -> None:
    """Show the check outputs that come from no computation."""
    first, second = (item.shared_set(seed) for seed in seeds[:2])
    accepted = [
        name
        for name, one, other in _pairs(_other_outputs(first, second), _other_outputs(second, first))
        if not _said(first, _outputs(first), one) and not _said(second, _outputs(second), other)
    ]
    where = f"{item.workload.name}: {task.check}()"
    count = len(_other_outputs(first, second))
    if task.compare and len(accepted) == count:
        found.warnings.append(f"{where} accepts anything, such as {_listed(accepted)}")
    if task.compare:
        return
    if accepted:
        reason = (
            f"{where} accepts {_listed(accepted)}, which would pass as a candidate: let it look at"
            " what follows from the inputs"
        )
        found.refusals.append(reason)
        found.degeneracies.append(reason)
        return
    own, zeros = _outputs(first), [torch.zeros_like(output) for output in _outputs(first)]
    for index in range(len(own)) if len(own) > 1 else ():
        others = [*own[:index], zeros[index], *own[index + 1 :]]
        if not same_values(own[index], zeros[index]) and not _said(first, own, others):
            found.warnings.append(
                f"{where} accepts zeros for output {index} beside right ones: a kernel that does"
                " not compute it may pass"
            )


def _other_outputs(
    own: InputSet, other: InputSet
) -> Mapping[str, Callable[[], list[torch.Tensor]]]:
    """Return outputs that are right by chance alone, by what they are called."""
    return {
        "zeros": lambda: [torch.zeros_like(output) for output in _outputs(own)],
        "ones": lambda: [torch.ones_like(output) for output in _outputs(own)],
        "the mean of each output everywhere": lambda: [_mean(output) for output in _outputs(own)],
        "each output in reverse order": lambda: [_reversed(output) for output in _outputs(own)],
        _ANOTHER_DRAW: lambda: _outputs(other),
    }


def _pairs(
    ones: Mapping[str, Callable[[], list[torch.Tensor]]],
    others: Mapping[str, Callable[[], list[torch.Tensor]]],
) -> Iterator[tuple[str, list[torch.Tensor], list[torch.Tensor]]]:
    for name, make in ones.items():
        yield name, make(), others[name]()


def _mean(output: torch.Tensor) -> torch.Tensor:
    """Return the mean everywhere; of whole numbers the most frequent one."""
    values = computable(output).flatten()
    is_float = output.is_floating_point()
    typical = float(values.double().mean()) if is_float else values.to(torch.int64).mode().values
    return torch.full_like(values, float(typical)).reshape(output.shape).to(output.dtype)


def _reversed(output: torch.Tensor) -> torch.Tensor:
    return computable(output).flatten().flip(0).reshape(output.shape).to(output.dtype)


def _outputs(reference: InputSet) -> list[torch.Tensor]:
    formats = reference.module.output_dtypes
    return [value.to(dtype) for value, dtype in zip(reference.expected(), formats, strict=True)]


def _said(
    reference: InputSet,
    expected: Sequence[torch.Tensor],
    actual: Sequence[torch.Tensor],
    *,
    time_share: float = 1.0,
) -> str:
    try:
        return refusal_of(reference, expected, actual, time_share=time_share)
    except TaskInvalidError as error:
        return error.message


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + " and " * (len(names) > 1) + names[-1]
