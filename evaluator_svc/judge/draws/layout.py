"""Where a draw's tensors lie in a shared buffer: inputs first, outputs in several slots last.

Before, between and behind them are guards that nobody may write. Knows nothing of torch and of
values.
"""

from collections.abc import Sequence
from typing import Final

from evaluator_svc.memory_needs import tensor_bytes
from evaluator_svc.messages.exchange import GUARD_BYTES, TensorSlot
from kernel_foundry.domain.admission import NamedTensor, TensorRole

_START_BYTES: Final = 4096
"""Every tensor starts at a multiple of this, as it would in memory of its own: on a CPU loads wait
for stores that lie a little off a multiple of a page."""


def lay_out(
    tensors: Sequence[NamedTensor], *, output_slots: int
) -> tuple[tuple[TensorSlot, ...], int]:
    """Return a slot for each tensor, in order, and the size of the whole in bytes.

    Args:
        tensors: The name table.
        output_slots: Copies of each output.
    """
    slots: list[TensorSlot] = []
    end = _aligned(GUARD_BYTES)
    for tensor in tensors:
        size = tensor_bytes(tensor)
        copies = output_slots if tensor.role is TensorRole.OUTPUT else 1
        stride = _aligned(size + GUARD_BYTES)
        slots.append(
            TensorSlot(
                name=tensor.name,
                role=tensor.role.value,
                dtype=tensor.dtype,
                shape=tensor.shape,
                size_bytes=size,
                offsets=tuple(end + i * stride for i in range(copies)),
            )
        )
        end += copies * stride
    return tuple(slots), end


def _aligned(size: int) -> int:
    return -(-size // _START_BYTES) * _START_BYTES
