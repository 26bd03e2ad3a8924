"""What torch's allocator holds on a GPU: whole segments, of which a result takes a part.

A kernel that knows where a result lies reaches the rest of its segment, so all of them are
overwritten before each call that counts.
"""

from collections.abc import Iterable
from typing import Final

import torch

from kernel_foundry.errors import BackendUnavailableError

Stretch = tuple[int, int]
"""Address and bytes."""

_LISTED: Final = "native"
"""The allocator that reports the memory that it holds."""


def segments(index: int) -> tuple[Stretch, ...]:
    """Return every segment of device `index`: of results, workspaces, graphs and what is free."""
    return tuple(
        (int(segment["address"]), int(segment["total_size"]))
        for segment in torch.cuda.memory_snapshot()  # type: ignore[no-untyped-call]
        if segment["device"] == index
    )


def check_listed(index: int) -> None:
    """Check, before there is a candidate, that torch reports all its memory on device `index`.

    Raises:
        BackendUnavailableError: it does not, and something of a call could be left to the next.
    """
    backend = torch.cuda.get_allocator_backend()
    if backend != _LISTED:
        raise BackendUnavailableError(
            f"torch allocates by {backend!r}, which does not tell where: take `backend` out of "
            "PYTORCH_CUDA_ALLOC_CONF, or leave library calls away",
            backend=backend,
        )
    held = torch.empty(1, device=torch.device("cuda", index))
    check_held((held,), segments(index))


def check_held(results: Iterable[torch.Tensor], held: tuple[Stretch, ...]) -> None:
    """See that results lie in segments.

    Raises:
        BackendUnavailableError: one does not.
    """
    for result in results:
        start, size_bytes = result.data_ptr(), result.nbytes
        if not any(a <= start and start + size_bytes <= a + size for a, size in held):
            raise BackendUnavailableError(
                f"torch {torch.__version__} does not list the segment of a result of "
                f"{size_bytes} bytes: use a release whose torch.cuda.memory_snapshot() does",
                torch=torch.__version__,
            )
