"""Where work of a GPU is queued: torch's current stream."""

from typing import Any, Final, NamedTuple

import torch


class Moment(NamedTuple):
    """After which all that a stream was given before is complete."""

    queue: int
    event: Any


# Torch's own functions, as Python takes its time for one around them; None without CUDA.
current_queue: Final[Any] = getattr(torch._C, "_cuda_getCurrentRawStream", None)
"""Returns the driver's handle of a GPU's current stream."""
is_captured: Final[Any] = getattr(torch._C, "_cuda_isCurrentStreamCapturing", None)
"""Returns whether what is queued now goes into a graph, which may run again later."""


def moment_of(tensor: torch.Tensor) -> Moment | None:
    """Return when the work on a tensor's device is complete; None on a CPU, which waits for it."""
    if not tensor.is_cuda:
        return None
    stream = torch.cuda.current_stream(tensor.device)
    return Moment(stream.cuda_stream, stream.record_event())


def join(moment: Moment, tensors: list[torch.Tensor]) -> None:
    """Let the current stream wait for a moment that another one has recorded, and use tensors."""
    if current_queue(tensors[0].get_device()) == moment.queue:
        return
    stream = torch.cuda.current_stream(tensors[0].device)
    stream.wait_event(moment.event)
    for tensor in tensors:
        tensor.record_stream(stream)
