"""One draw: the judge's pristine input sets and the shared regions that a runner works on.

Outputs are poisoned before a runner sees them (NaN as float, -1 as integer), and guarded bytes
lie around every tensor. Inputs can be of a distribution of their own, and be changed in place
later on. Regions are handed
on to the next draw of the same size; by then the runner that had them is dead, and every byte
that it could have written is written anew. Of a large workload only one seed's pristine tensors
and expected outputs are held at a time; others are drawn again from their seed. Knows nothing of
comparison.
"""

import random
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

import torch

from evaluator_svc.judge.draws.guards import GuardedRegion, guards_of
from evaluator_svc.judge.draws.input_change import InputChange, changed
from evaluator_svc.judge.draws.input_set import InputSet
from evaluator_svc.judge.draws.prepared import PreparedWorkload
from evaluator_svc.judge.draws.value_ranges import in_range
from evaluator_svc.judge.memory.judge_memory import JudgeMemory, SharedRegion
from evaluator_svc.judge.verdict.compare import ExpectedOutput, expect
from evaluator_svc.messages.exchange import Draw, TensorSlot
from kernel_foundry.domain.admission import Distribution, TensorRole
from kernel_foundry.domain.task import Tolerance
from kernel_foundry.errors import TaskInvalidError
from kernel_foundry_native import _core as native

TELLING_SEED: Final = 0
"""Index of the seed whose inputs tell of rounding to 16 bits, and whose outputs are audited."""

_CHANGE_STREAM: Final = 0x2545_F491_4F6C_DD1D
"""Tells the seed of a change from that of the inputs."""


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
        distributions: What becomes of each seed's inputs; empty: they stay as drawn.
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
        distributions: Sequence[Distribution] = (),
    ) -> None:
        self.handle = handle
        self.seeds = tuple(seeds)
        self.slots = prepared.slots
        self.memory = memory
        self.regions = tuple(regions)
        self.tolerance = tolerance
        self.distributions = tuple(distributions)
        self.prepared = prepared
        self._sets: OrderedDict[int, InputSet] = OrderedDict()
        self._expected: dict[int, tuple[ExpectedOutput, ...]] = {}
        self._changes: dict[int, InputChange] = {}
        self._ordinary: InputSet | None = None
        """What several distributions are made of."""
        self._guarded = self._guard()
        # Backwards: the verdict begins with the first seed, which is then the one that is held.
        for seed in reversed(range(len(self.seeds))):
            self._fill(self.input_set(seed), self.regions[seed])
            self._guarded[seed].write()
        self.poison()

    @property
    def workload(self) -> str:
        """Name of its workload."""
        return self.prepared.workload.name

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
            workload=self.workload,
            size_bytes=self.regions[0].size_bytes,
            slots=self.slots,
            seed_count=len(self.regions),
            handles=handles,
        )
        return draw, descriptors

    def poison(
        self, *, seeds: Sequence[int] | None = None, slots: Sequence[int] | None = None
    ) -> None:
        """Poison the output slots of every seed, or of some; all slots, or some."""
        for seed in range(len(self.seeds)) if seeds is None else seeds:
            for output in self.output_slots:
                for slot in range(len(output.offsets)) if slots is None else slots:
                    address = self.regions[seed].address + output.offsets[slot]
                    self.memory.fill(address, output.size_bytes, native.POISON_BYTE)
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

    def stray_writes(self) -> tuple[str, ...]:
        """Return the names of tensors around which something was written."""
        touched = (name for region in self._guarded for name in region.touched())
        return tuple(dict.fromkeys(touched))

    @property
    def guard_bytes(self) -> int:
        """Bytes of all guards."""
        return sum(region.guard_bytes for region in self._guarded)

    def change(self, seed: int, *, is_sparse: bool, with_parameters: bool) -> bool:
        """Change a few elements of a seed's inputs, in place; return whether any could be.

        Outputs are left as they are.
        """
        before = self.input_set(seed)
        change = InputChange(
            # Told by the draw's own seeds, so that a record can be run again.
            other_seed=(self.seeds[seed] ^ _CHANGE_STREAM) % 2**63,
            is_sparse=is_sparse,
            with_parameters=with_parameters,
        )
        after = self._changed(before, change)
        self._changes[seed] = change
        self._sets[seed] = after
        self._expected.pop(seed, None)
        tensors = list(zip(self.source_slots, before.pristine, after.pristine, strict=True))
        for slot, old, new in tensors:
            if new is not old:
                address = self.regions[seed].address + slot.offsets[0]
                self.memory.copy(address, new.data_ptr(), slot.size_bytes)
        self.memory.synchronize()
        return any(new is not old for _, old, new in tensors)

    def expected_unchanged(self, seed: int) -> tuple[ExpectedOutput, ...]:
        """Return what was expected before the seed's inputs were changed, computed anew."""
        if self.is_large:
            self._expected.clear()
            self._sets.clear()
        return self._expect(self._drawn(seed))

    def input_set(self, seed: int) -> InputSet:
        """Return a seed's pristine tensors, drawn again when they are not held."""
        if seed not in self._sets:
            limit = 1 if self.prepared.is_large else len(self.seeds)
            while len(self._sets) >= limit:
                oldest, _ = self._sets.popitem(last=False)
                self._expected.pop(oldest, None)
            drawn, change = self._drawn(seed), self._changes.get(seed)
            self._sets[seed] = drawn if change is None else self._changed(drawn, change)
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
            self._expected[seed] = self._expect(self.input_set(seed))
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
        for slot, tensor in zip(self.source_slots, input_set.pristine, strict=True):
            if tuple(tensor.shape) != slot.shape:
                raise TaskInvalidError(
                    f"get_inputs() gives {slot.name!r} of shape {tuple(tensor.shape)}, before"
                    f" of shape {slot.shape}"
                )
            address = region.address + slot.offsets[0]
            self.memory.copy(address, tensor.data_ptr(), slot.size_bytes)

    def _guard(self) -> list[GuardedRegion]:
        guards = guards_of(self.slots, self.regions[0].size_bytes)
        byte = random.SystemRandom().randrange(1, native.POISON_BYTE)
        return [GuardedRegion(self.memory, region, guards, byte) for region in self.regions]

    def _drawn(self, seed: int) -> InputSet:
        """Return a seed's inputs before any change in place."""
        if self.distributions:
            if self._ordinary is None or self._ordinary.seed != self.seeds[seed]:
                self._ordinary = self.prepared.input_set(self.seeds[seed])
            return in_range(self.prepared, self._ordinary, self.distributions[seed])
        return self.prepared.input_set(self.seeds[seed], is_telling=seed == TELLING_SEED)

    def _changed(self, input_set: InputSet, change: InputChange) -> InputSet:
        return changed(input_set, self.prepared.input_set(change.other_seed), change)

    def _expect(self, input_set: InputSet) -> tuple[ExpectedOutput, ...]:
        outputs = input_set.expected()
        shapes = [tuple(output.shape) for output in outputs]
        if shapes != [slot.shape for slot in self.output_slots]:
            raise TaskInvalidError(f"the outputs' shapes depend on the inputs: {shapes}")
        is_scaled = self.prepared.task.tolerance is None
        return tuple(expect(o, is_scaled=is_scaled, memory=self.memory) for o in outputs)
