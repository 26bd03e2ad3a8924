"""One draw: the judge's pristine input sets and the shared buffers that a runner works on.

Outputs are poisoned before a runner sees them (NaN as float, -1 as integer). Buffers are handed
on to the next draw of the same size, because fresh shared pages cost more time than everything
else here; by then the runner that had them is dead, and every byte that it could have written is
written anew. Knows nothing of comparison.
"""

from collections.abc import Sequence

import torch

from evaluator_svc.exchange import Draw, TensorSlot
from evaluator_svc.judge.compare import ExpectedOutput, expect
from evaluator_svc.judge.input_set import InputSet
from kernel_foundry.domain.admission import TensorRole
from kernel_foundry.domain.task import Tolerance
from kernel_foundry.errors import TaskInvalidError
from kernel_foundry_native import _core as native


class BufferPool:
    """Shared buffers that no draw uses at present.

    Args:
        limit_bytes: Most that is kept; the oldest are closed first.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._free: list[native.SharedBuffer] = []

    def take(self, size_bytes: int) -> native.SharedBuffer:
        """Return a buffer of exactly `size_bytes`; its content is unspecified."""
        for index, buffer in enumerate(self._free):
            if buffer.size_bytes == size_bytes:
                return self._free.pop(index)
        return native.SharedBuffer.create(size_bytes)

    def give(self, buffers: Sequence[native.SharedBuffer]) -> None:
        """Take buffers back. No living process but this one may hold them."""
        self._free += buffers
        while sum(buffer.size_bytes for buffer in self._free) > self._limit_bytes:
            self._free.pop(0).close()


class SharedDraw:
    """A draw that the judge keeps until it is released.

    Args:
        handle: Its number.
        sets: One for each seed.
        slots: Where each tensor lies; the same in every buffer.
        buffers: One for each seed; filled here.
        tolerance: For the comparison of outputs.
        is_scaled: Whether the tolerance is in units of each row's scale.
    """

    def __init__(
        self,
        *,
        handle: int,
        sets: Sequence[InputSet],
        slots: tuple[TensorSlot, ...],
        buffers: Sequence[native.SharedBuffer],
        tolerance: Tolerance,
        is_scaled: bool,
    ) -> None:
        self.handle = handle
        self.sets = tuple(sets)
        self.slots = slots
        self.buffers = tuple(buffers)
        self.tolerance = tolerance
        self._is_scaled = is_scaled
        self._expected: dict[int, tuple[ExpectedOutput, ...]] = {}
        for input_set, buffer in zip(self.sets, self.buffers, strict=True):
            self._fill(input_set, buffer)
        self.poison()

    @property
    def source_slots(self) -> tuple[TensorSlot, ...]:
        """Slots of inputs, parameters and buffers, in the order of `InputSet.pristine`."""
        return tuple(s for s in self.slots if s.role != TensorRole.OUTPUT)

    @property
    def output_slots(self) -> tuple[TensorSlot, ...]:
        """Slots of the outputs, in order."""
        return tuple(s for s in self.slots if s.role == TensorRole.OUTPUT)

    def message(self, workload: str) -> Draw:
        """Return the draw as runners are told of it."""
        return Draw(
            draw=self.handle,
            workload=workload,
            size_bytes=self.buffers[0].size_bytes,
            slots=self.slots,
            seed_count=len(self.buffers),
        )

    def poison(self) -> None:
        """Poison every output slot of every seed, alignment gaps between them included."""
        start = min(slot.offsets[0] for slot in self.output_slots)
        for buffer in self.buffers:
            native.fill(buffer.address + start, buffer.size_bytes - start, native.POISON_BYTE)

    def modified_inputs(self, seed: int) -> tuple[str, ...]:
        """Return the names of inputs and parameters that differ from the pristine copies."""
        base = self.buffers[seed].address
        return tuple(
            slot.name
            for slot, pristine in zip(self.source_slots, self.sets[seed].pristine, strict=True)
            if not native.same_bytes(base + slot.offsets[0], pristine.data_ptr(), slot.size_bytes)
        )

    def expected(self, seed: int) -> tuple[ExpectedOutput, ...]:
        """Return the expected outputs; the reference runs at the first call for a seed.

        Raises:
            TaskInvalidError: the reference raises, or its outputs' shapes depend on values.
        """
        if seed not in self._expected:
            outputs = self.sets[seed].expected()
            shapes = [tuple(output.shape) for output in outputs]
            if shapes != [slot.shape for slot in self.output_slots]:
                raise TaskInvalidError(f"the outputs' shapes depend on the inputs: {shapes}")
            self._expected[seed] = tuple(expect(o, is_scaled=self._is_scaled) for o in outputs)
        return self._expected[seed]

    def output_tensor(self, seed: int, output: int, slot: int) -> torch.Tensor:
        """Return a view of what a runner wrote; a copy where the candidate must not interfere."""
        place = self.output_slots[output]
        dtype = getattr(torch, place.dtype)
        if not place.size_bytes:
            return torch.empty(place.shape, dtype=dtype)
        whole = torch.frombuffer(self.buffers[seed], dtype=torch.uint8)
        start = place.offsets[slot]
        return whole[start : start + place.size_bytes].view(dtype).view(place.shape)

    def _fill(self, input_set: InputSet, buffer: native.SharedBuffer) -> None:
        end = 0
        for slot, tensor in zip(self.source_slots, input_set.pristine, strict=True):
            if tuple(tensor.shape) != slot.shape:
                raise TaskInvalidError(
                    f"get_inputs() gives {slot.name!r} of shape {tuple(tensor.shape)}, before"
                    f" of shape {slot.shape}"
                )
            start = slot.offsets[0]
            # Gaps between tensors are cleared: nothing of an earlier draw stays behind.
            native.fill(buffer.address + end, start - end, 0)
            native.copy(buffer.address + start, tensor.data_ptr(), slot.size_bytes)
            end = start + slot.size_bytes
        outputs_start = self.output_slots[0].offsets[0]
        native.fill(buffer.address + end, outputs_start - end, 0)
