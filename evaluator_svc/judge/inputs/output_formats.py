"""The format that each output rounds to: in one task some may keep more bits than others.

A result in float32 beside a copy of it in float16 has all bits of float32, and is to have them in a
candidate.
"""

from collections.abc import Sequence

import torch

from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.reference.formats import narrowest
from evaluator_svc.judge.tensors.relative_errors import largest_error
from kernel_foundry.errors import TaskInvalidError


def output_roundings(
    input_set: InputSet, outputs: Sequence[torch.Tensor], rounding: torch.dtype
) -> tuple[torch.dtype, ...]:
    """Return the format that each output rounds to.

    Its own, where nothing on the way to it was rounded to fewer bits; else the task's.

    Args:
        input_set: What the reference ran on.
        outputs: What it gave in its own formats.
        rounding: The narrowest format that it rounds to.
    """
    # What is wider than float32 counts as float32 here.
    own = [narrowest((output.dtype, torch.float32)) for output in outputs]
    is_wider = [
        output.is_floating_point() and narrowest((dtype, rounding)) is not dtype
        for output, dtype in zip(outputs, own, strict=True)
    ]
    if not any(is_wider):
        return (rounding,) * len(outputs)
    try:
        exact = input_set.run(dtype=torch.float32)
    except TaskInvalidError:
        return (rounding,) * len(outputs)
    return tuple(
        dtype if wider and _is_same(output, wide) else rounding
        for output, wide, wider, dtype in zip(outputs, exact, is_wider, own, strict=True)
    )


def _is_same(output: torch.Tensor, wide: torch.Tensor) -> bool:
    return (
        output.numel() > 0
        and largest_error(output, wide.to(output.dtype)) <= torch.finfo(output.dtype).eps
    )
