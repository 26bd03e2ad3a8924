"""Where a draw's tensors lie in a shared buffer: inputs first, outputs in several slots last.

Before, between and behind them are guards that nobody may write; on a CPU a page of each is closed
to kernels (`placement`).
"""

from collections.abc import Sequence

from evaluator_svc.messages.draw import TensorSlot
from evaluator_svc.messages.placement import PAGE_BYTES, place
from evaluator_svc.sizes.memory_needs import tensor_bytes
from kernel_foundry.domain.admission import NamedTensor, TensorRole


def lay_out(
    tensors: Sequence[NamedTensor], *, output_slots: int
) -> tuple[tuple[TensorSlot, ...], int]:
    """Return a slot for each tensor, in order, and the size of the whole in bytes.

    Args:
        tensors: The name table.
        output_slots: Copies of each output.
    """
    slots: list[TensorSlot] = []
    end = PAGE_BYTES
    for tensor in tensors:
        size = tensor_bytes(tensor)
        offsets = []
        for _ in range(output_slots if tensor.role is TensorRole.OUTPUT else 1):
            offset, end = place(size, end)
            offsets.append(offset)
        slots.append(
            TensorSlot(
                name=tensor.name,
                role=tensor.role.value,
                dtype=tensor.dtype,
                shape=tensor.shape,
                size_bytes=size,
                offsets=tuple(offsets),
            )
        )
    return tuple(slots), end
