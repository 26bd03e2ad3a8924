"""A call of a task's check: what it is shown, and how to read its answer."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import torch
from torch.utils._pytree import tree_map

from kernel_foundry.errors import TaskInvalidError
from kernel_foundry.printable import one_line

LONGEST_SAID: Final = 1000
"""Characters of what a check says."""


def shown_values(
    inputs: Sequence[Any], expected: Sequence[torch.Tensor], actual: Sequence[torch.Tensor]
) -> tuple[list[Any], list[torch.Tensor], list[torch.Tensor]]:
    """Return copies for a check: whatever it writes to is its own.

    In host memory where an output is whole numbers. A check looks things up with them, and one
    that is out of range would end the process on a GPU; on the host it is an `IndexError`.
    """
    is_on_host = any(not output.is_floating_point() for output in expected)

    def copied(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        return value.to("cpu" if is_on_host else value.device, copy=True)

    copies: list[list[Any]] = [tree_map(copied, list(v)) for v in (inputs, expected, actual)]
    return copies[0], copies[1], copies[2]


def refusal_in(said: object, call: str) -> str:
    """Return what a check's answer finds wrong, in one printable line; "" where that is nothing.

    Args:
        said: The answer.
        call: Names the call in an error.

    Raises:
        TaskInvalidError: it is no answer.
    """
    if isinstance(said, torch.Tensor | np.bool_):
        said = bool(said)
    if said is None or said is True:
        return ""
    if said is False:
        return "wrong"
    if isinstance(said, str):
        return one_line(said[:LONGEST_SAID])[:LONGEST_SAID] or "wrong"
    raise TaskInvalidError(
        f"{call} gives a {type(said).__name__}; expected None, True, False or a text that says"
        " what is wrong"
    )
