"""Where work of a GPU is queued: the queue that it has by default, and no other."""

import contextlib
from contextlib import AbstractContextManager
from typing import Any

import torch


def current_queue(_index: int) -> int:
    """Return the driver's handle of the default queue."""
    return 0


def moment_of(_tensor: torch.Tensor) -> None:
    """Return nothing to wait for: work in one queue runs in order."""


def join(_moment: None, _tensors: list[torch.Tensor]) -> None:
    """Wait for nothing."""


def is_captured() -> bool:
    """Return False: what is queued by default goes into no graph."""
    return False


def same_queue(_tensor: torch.Tensor) -> AbstractContextManager[Any]:
    """Return a context that changes nothing: all threads queue work in one place."""
    return contextlib.nullcontext()
