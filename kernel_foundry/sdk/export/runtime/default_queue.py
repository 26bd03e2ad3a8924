"""Where work of a GPU is queued: the queue that it has by default, and no other."""

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
