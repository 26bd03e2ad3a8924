"""One draw: the judge's pristine input sets and the shared regions that a runner works on.

Outputs are poisoned before a runner sees them (NaN as float, -1 as integer). Regions are handed
on to the next draw of the same size; by then the runner that had them is dead, and every byte
that it could have written is written anew. Of a large workload only one seed's pristine tensors
and expected outputs are held at a time; others are drawn again from their seed. Knows nothing of
comparison.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

import torch

from evaluator_svc.exchange import Draw, TensorSlot
from evaluator_svc.judge.compare import ExpectedOutput, expect
from evaluator_svc.judge.input_set import InputSet
from evaluator_svc.judge.judge_memory import JudgeMemory, SharedRegion
from evaluator_svc.judge.prepared import PreparedWorkload
from kernel_foundry.domain.admission import TensorRole
from kernel_foundry.domain.task import Tolerance
from kernel_foundry.errors import TaskInvalidError
from kernel_foundry_native import _core as native

TELLING_SEED: Final = 0
"""Index of the seed whose inputs tell of rounding to 16 bits, and whose outputs are audited."""


class SharedDraw:
    """A draw that the judge keeps until it is released.

    Args:
        handle: Its number.
        prepared: The workload.
        seeds: What its inputs and parameters are drawn from.
        memory: Where the regions lie.
        regions: One for each seed; filled here.
        tolerance: For the comparison of outputs; in units of each row's scale when the task
            leaves it to the admission.
    """

    def __init__(
        self,
        *,
        handle: int,
        prepared: PreparedWorkload,
        seeds: Sequence[int],
        memory: JudgeMemory,
        regions: Sequence[SharedRegion],
        tolerance: Tolerance,
    ) -> None:
        self.handle = handle
        self.seeds = tuple(seeds)
        self.slots = prepared.slots
        self.memory = memory
        self.regions = tuple(regions)
        self.tolerance = tolerance
        self.prepared = prepared
        self._sets: OrderedDict[int, InputSet] = OrderedDict()
        self._expected: dict[int, tuple[ExpectedOutput, ...]] = {}
        # Backwards: the verdict begins with the first seed, which is then the one that is held.
        for seed in reversed(range(len(self.seeds))):
            self._fill(self.input_set(seed), self.regions[seed])
        self.poison()

    @property
    def is_large(self) -> bool:
        """Whether copies are too many bytes to keep."""
        return self.prepared.is_large

    @property
    def source_slots(self) -> tuple[TensorSlot, ...]:
        """Slots of inputs, parameters and buffers, in the order of `InputSet.pristine`."""
        return tuple(s for s in self.slots if s.role != TensorRole.OUTPUT)

    @property
    def output_slots(self) -> tuple[TensorSlot, ...]:
        """Slots of the outputs, in order."""
        return tuple(s for s in self.slots if s.role == TensorRole.OUTPUT)

    def message(self) -> tuple[Draw, tuple[int, ...]]:
        """Return the draw as runners are told of it, and the descriptors beside it."""
        handles, descriptors = self.memory.passes(self.regions)
        draw = Draw(
            draw=self.handle,
            workload=self.prepared.workload.name,
            size_bytes=self.regions[0].size_bytes,
            slots=self.slots,
            seed_count=len(self.regions),
            handles=handles,
        )
        return draw, descriptors

    def poison(self) -> None:
        """Poison every output slot of every seed, alignment gaps between them included."""
        start = min(slot.offsets[0] for slot in self.output_slots)
        for region in self.regions:
            size_bytes = region.size_bytes - start
            self.memory.fill(region.address + start, size_bytes, native.POISON_BYTE)
        self.memory.synchronize()

    def modified_inputs(self, seed: int) -> tuple[str, ...]:
        """Return the names of inputs and parameters that differ from the pristine copies."""
        base = self.regions[seed].address
        return tuple(
            slot.name
            for slot, pristine in zip(self.source_slots, self.input_set(seed).pristine, strict=True)
            if not self.memory.same_bytes(
                base + slot.offsets[0], pristine.data_ptr(), slot.size_bytes
            )
        )

    def input_set(self, seed: int) -> InputSet:
        """Return a seed's pristine tensors, drawn again when they are not held."""
        if seed not in self._sets:
            limit = 1 if self.prepared.is_large else len(self.seeds)
            while len(self._sets) >= limit:
                oldest, _ = self._sets.popitem(last=False)
                self._expected.pop(oldest, None)
            is_telling = seed == TELLING_SEED
            self._sets[seed] = self.prepared.input_set(self.seeds[seed], is_telling=is_telling)
        return self._sets[seed]

    def timed_sets(self) -> tuple[InputSet, ...]:
        """Return sets to time PyTorch on: of a large workload one, which no cache holds."""
        if not self.prepared.is_large:
            return tuple(self.input_set(seed) for seed in range(len(self.seeds)))
        self._expected.clear()
        self._sets.clear()
        return (self.input_set(0),)

    def expected(self, seed: int) -> tuple[ExpectedOutput, ...]:
        """Return the expected outputs; the reference runs when they are not held.

        Raises:
            TaskInvalidError: the reference raises, or its outputs' shapes depend on values.
        """
        if seed not in self._expected:
            outputs = self.input_set(seed).expected()
            shapes = [tuple(output.shape) for output in outputs]
            if shapes != [slot.shape for slot in self.output_slots]:
                raise TaskInvalidError(f"the outputs' shapes depend on the inputs: {shapes}")
            is_scaled = self.prepared.task.tolerance is None
            self._expected[seed] = tuple(
                expect(o, is_scaled=is_scaled, memory=self.memory) for o in outputs
            )
        return self._expected[seed]

    def output_tensor(self, seed: int, output: int, slot: int) -> torch.Tensor:
        """Return a view of what a runner wrote; a copy where the candidate must not interfere."""
        place = self.output_slots[output]
        dtype = getattr(torch, place.dtype)
        if not place.size_bytes:
            return torch.empty(place.shape, dtype=dtype, device=self.memory.torch_device)
        start = place.offsets[slot]
        part = self.memory.bytes_of(self.regions[seed], start, place.size_bytes)
        return part.view(dtype).view(place.shape)

    def _fill(self, input_set: InputSet, region: SharedRegion) -> None:
        end = 0
        for slot, tensor in zip(self.source_slots, input_set.pristine, strict=True):
            if tuple(tensor.shape) != slot.shape:
                raise TaskInvalidError(
                    f"get_inputs() gives {slot.name!r} of shape {tuple(tensor.shape)}, before"
                    f" of shape {slot.shape}"
                )
            start = slot.offsets[0]
            # Gaps between tensors are cleared: nothing of an earlier draw stays behind.
            self.memory.fill(region.address + end, start - end, 0)
            self.memory.copy(region.address + start, tensor.data_ptr(), slot.size_bytes)
            end = start + slot.size_bytes
        outputs_start = self.output_slots[0].offsets[0]
        self.memory.fill(region.address + end, outputs_start - end, 0)
