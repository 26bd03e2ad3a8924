"""Outputs that are no numbers, where the task's check alone tells what is right."""

from collections.abc import Sequence

import torch

from evaluator_svc.judge.tensors.tensor_parts import all_finite


def no_number_in(expected: Sequence[torch.Tensor], actual: Sequence[torch.Tensor]) -> str:
    """Return which output holds NaN or infinity though the reference's is finite; "" where none.

    No check is asked about that: NaN passes each of the form `if error > limit`.
    """
    for index, (wanted, found) in enumerate(zip(expected, actual, strict=True)):
        if all_finite(wanted) and not all_finite(found):
            return f"output {index} holds NaN or infinity, and the reference's is finite"
    return ""
