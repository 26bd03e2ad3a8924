"""Lists values and sizes that candidates are never tried with, since kernels may rely on them."""

from collections.abc import Sequence

import torch

from evaluator_svc.judge.admission.size_groups import SizeGroups
from evaluator_svc.judge.inputs.prepared_workload import PREPARATION_SEED, PreparedWorkload
from evaluator_svc.judge.reference.formats import same_values
from evaluator_svc.judge.tensors.equal_parts import equal_parts
from evaluator_svc.judge.tensors.structure import is_in_order, is_whole, structures
from evaluator_svc.judge.unusual_values.unusual_places import may_be_an_accident
from evaluator_svc.sizes.argument_numbers import PREFIX
from evaluator_svc.sizes.generated_workloads import exceeded, generated_workload
from kernel_foundry.domain.admission import WorkloadAdmission
from kernel_foundry.domain.task import Task, Workload


def untried_arguments(
    task: Task,
    sizes: SizeGroups,
    prepared: Sequence[PreparedWorkload],
    admitted: Sequence[WorkloadAdmission],
) -> tuple[str, ...]:
    """Return a sentence for each limit of what candidates are tried with.

    Args:
        task: The task.
        sizes: What can change in it.
        prepared: Its own workloads.
        admitted: All that candidates are judged on.

    Raises:
        TaskInvalidError: the reference raises.
    """
    generated = [workload for workload in admitted if workload.is_generated]
    found = [generated_workload(task, workload.workload) for workload in generated]
    workloads = [workload for workload in found if workload is not None]
    smallest = min(prepared, key=lambda item: item.size_bytes)
    return (
        *_sizes(sizes, prepared, workloads),
        *_numbers(prepared, workloads),
        *_orders(smallest),
        *_equal_parts(smallest),
        *_single_places(smallest),
        *_changed_buffers(smallest),
    )


def _sizes(
    sizes: SizeGroups, prepared: Sequence[PreparedWorkload], workloads: Sequence[Workload]
) -> list[str]:
    if any(item.workload.held_out for item in prepared):
        return []
    given = [size for workload in workloads for size in workload.sizes]
    stuck = [
        group.keys[0]
        for group in sizes.groups
        if not any(s.name in group.keys and s.value != group.value for s in given)
    ]
    unchanged = [*sizes.fixed, *stuck]
    said = []
    task = prepared[0].task
    refused = "" if task.compare else f", or {task.check}() refuses its outputs there"
    if unchanged:
        said.append(
            f"{', '.join(unchanged)}: candidates are tried with no other size, because the"
            " reference does not run with one, or not well enough to judge by"
            f"{refused}; name a held-out workload with other sizes if there is one"
        )
    elif not sizes.groups:
        said.append(
            "get_inputs() has no size that can be changed: candidates are tried with no other"
            " shapes than it gives; make a size of it a module-level constant"
        )
    if sizes.joint:
        said.append(
            f"{', '.join(sizes.joint)}: sides of several inputs that need not be equal, and"
            " candidates are tried with equal ones alone; give each a size of its own if they may"
            " differ"
        )
    larger = exceeded(sizes.groups, workloads)
    smaller = [g.keys[0] for g in sizes.groups if g.keys[0] not in {*larger, *stuck}]
    if smaller:
        said.append(
            f"{', '.join(smaller)}: candidates are tried with no larger size; name a held-out "
            "workload with one if they shall be"
        )
    return said


def _numbers(prepared: Sequence[PreparedWorkload], workloads: Sequence[Workload]) -> list[str]:
    """Return the arguments that are no tensors and have one value in all workloads."""
    changed = {
        size.name.removeprefix(PREFIX).partition("/")[0]
        for workload in workloads
        for size in workload.sizes
        if size.name.startswith(PREFIX)
    }
    smallest = min(prepared, key=lambda item: item.size_bytes)
    literals = [{scalar.name: scalar.literal for scalar in item.scalars} for item in prepared]
    alike = [
        name
        for name, value in smallest.shared_set(PREPARATION_SEED).arguments.constants
        if value is not None and name not in changed and len({s.get(name) for s in literals}) == 1
    ]
    if not alike:
        return []
    return [f"{', '.join(alike)}: candidates are tried with no other value of these arguments"]


def _orders(item: PreparedWorkload) -> list[str]:
    """Return the inputs that are in order in every draw: borders, offsets, masks of lengths."""
    arguments = item.shared_set(PREPARATION_SEED).arguments
    named = zip(arguments.names, arguments.tensors, strict=True)
    ordered = [n for n, t in named if n not in item.task.constants and is_in_order(t)]
    if not ordered:
        return []
    return [
        f"{', '.join(ordered)}: all rows are in order, and candidates are tried with no others:"
        " padding is on one side, and nothing has to be sorted"
    ]


def _equal_parts(item: PreparedWorkload) -> list[str]:
    """Return the inputs each of whose values a row has twice in every draw."""
    arguments = item.shared_set(PREPARATION_SEED).arguments
    named = zip(arguments.names, arguments.tensors, strict=True)
    twofold = [
        name
        for name, tensor in named
        if name not in item.task.constants and not is_whole(tensor) and equal_parts(tensor)
    ]
    if not twofold:
        return []
    return [
        f"{', '.join(twofold)}: the two halves of each row, or the two numbers of each pair, are"
        " equal, and candidates are tried with no others; they stay the same between timed calls"
    ]


def _single_places(item: PreparedWorkload) -> list[str]:
    """Return the inputs whose rows name no place twice, or are one at one place and zero else."""
    sample, uses = item.shared_set(PREPARATION_SEED), item.input_uses
    names, said = sample.arguments.names, []
    bound = {
        index: structures(tensor)
        for index, tensor in enumerate(sample.inputs)
        if names[index] not in item.task.constants
    }
    single = [
        names[index]
        for index in sorted(uses.places.intersection(bound))
        if "permutation" in bound[index] and not may_be_an_accident(sample.inputs[index])
    ]
    if single:
        said.append(
            f"{', '.join(single)}: no place comes twice in a row, and candidates are tried with no"
            " repetitions"
        )
    hot = [
        names[index]
        for index, found in bound.items()
        if found >= {"labels", "shares"} and index not in uses.soft
    ]
    if hot:
        said.append(
            f"{', '.join(hot)}: one element of each row is one and all others are zero, and"
            " candidates are tried with no other shares"
        )
    return said


def _changed_buffers(item: PreparedWorkload) -> list[str]:
    """Return the buffers that forward changes, which no plan can."""
    if next(item.module.model.buffers(), None) is None:
        return []
    model, values = item.shared_set(PREPARATION_SEED).callable_model()
    before = {path: buffer.clone() for path, buffer in model.named_buffers()}
    with item.module.user_code("forward()"), torch.no_grad():
        model(*values)
    after = dict(model.named_buffers())
    changed = [path for path, old in before.items() if not same_values(old, after[path])]
    if not changed:
        return []
    return [
        f"{', '.join(changed)}: forward() changes these buffers, and a kernel cannot: only its"
        " outputs are compared"
    ]
