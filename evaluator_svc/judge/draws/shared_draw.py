"""One draw: the judge's pristine input sets and the shared buffers that a runner works on.

Outputs are poisoned before a runner sees them, each copy with other bytes, and guarded bytes lie
around every tensor. Inputs can be of a distribution of their own, and be changed in place later on.
Buffers are handed on to the next draw of the same size; by then the runner that had them is dead,
and every byte that it could have written is written anew. A lean draw has one buffer, which holds
one seed's inputs at a time, and keeps nothing beside it: pristine tensors are drawn again from
their seed, expected outputs computed again. Comparison is in `judge/comparison`.
"""

import dataclasses
import math
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import torch

from evaluator_svc.judge.draws.expected_output import ExpectedOutput, expect
from evaluator_svc.judge.draws.guards import GuardedBuffer, guards_of
from evaluator_svc.judge.draws.input_change import (
    InputChange,
    Places,
    changed,
    choose_places,
    patch,
    replacements,
)
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload
from evaluator_svc.judge.memory.judge_memory import JudgeMemory, SharedBuffer
from evaluator_svc.judge.timed_calls.call_inputs import (
    CallValues,
    change,
    redrawn_tensors,
    with_call_values,
)
from evaluator_svc.judge.unusual_values.distributions import with_distribution
from evaluator_svc.judge.unusual_values.mixed_rows import with_mixed_rows
from evaluator_svc.messages.distribution_traits import Trait, has
from evaluator_svc.messages.draw import POISON_BYTES, Draw, TensorSlot
from kernel_foundry.domain.admission import Distribution, TensorRole
from kernel_foundry.domain.task import Tolerance
from kernel_foundry.errors import InvalidArgumentError, TaskInvalidError
from kernel_foundry_native import _core as native

_CHANGE_STREAM: Final = 0x2545_F491_4F6C_DD1D
"""Distinguishes the seed of a change from the seed of the inputs."""
_CALL_STREAM: Final = 0x6A09_E667_F3BC_C909
"""Distinguishes the seed that turns inputs into those of a timed call."""


class SharedDraw:
    """A draw that the judge keeps until it is released.

    Args:
        handle: Its number.
        prepared: The workload.
        seeds: What its inputs and parameters are drawn from.
        memory: Where the buffers lie.
        buffers: One for each seed, of a lean draw one; filled here.
        tolerance: For the comparison of outputs; in units of each row's scale when the task
            leaves it to the admission.
        distributions: What becomes of each seed's inputs; empty: they stay as drawn.
        mixed: What becomes of blocks of rows of the last seed's inputs instead; empty: nothing.
        is_lean: Whether one seed follows the other, from the last one to the first.
    """

    def __init__(
        self,
        *,
        handle: int,
        prepared: PreparedWorkload,
        seeds: Sequence[int],
        memory: JudgeMemory,
        buffers: Sequence[SharedBuffer],
        tolerance: Tolerance,
        distributions: Sequence[Distribution] = (),
        mixed: Sequence[Distribution] = (),
        is_lean: bool = False,
    ) -> None:
        self.handle = handle
        self.seeds = tuple(seeds)
        self.memory = memory
        self.redrawn = redrawn_tensors(prepared, memory)
        """As which type each of the source slots is redrawn before a timed call."""
        self.slots = _with_redraws(prepared.lean_slots if is_lean else prepared.slots, self.redrawn)
        self.buffers = tuple(buffers)
        self.tolerance = tolerance
        self.distributions = tuple(distributions)
        self.mixed = tuple(mixed)
        self.prepared = prepared
        self.is_lean = is_lean
        self.audited_strain: float | None = None
        """How far outputs that were audited are from the reference in its own formats, in units of
        their rounding errors; None: none were."""
        self._loaded = len(seeds) - 1
        self._sets: dict[int, InputSet] = {}
        self._expected: dict[int, tuple[ExpectedOutput, ...]] = {}
        self._expected_call: tuple[tuple[int, CallValues], tuple[ExpectedOutput, ...]] | None = None
        """Of the last call that was asked for."""
        self._patches: dict[int, tuple[Places | None, ...]] = {}
        self._ordinary: InputSet | None = None
        """What several distributions are made of."""
        self._guarded = self._guard()
        for seed in self.loaded:
            self._fill(seed)
        self._poisoned_times = 0
        self.poison()
        self._let_go()

    @property
    def workload(self) -> str:
        """Name of its workload."""
        return self.prepared.workload.name

    @property
    def loaded(self) -> tuple[int, ...]:
        """Indices of the seeds whose inputs lie in a buffer."""
        return (self._loaded,) if self.is_lean else tuple(range(len(self.seeds)))

    @property
    def source_slots(self) -> tuple[TensorSlot, ...]:
        """Slots of inputs, parameters and buffers, in the order of `InputSet.pristine`."""
        return tuple(s for s in self.slots if s.role != TensorRole.OUTPUT)

    def has_mixed_rows(self, seed: int) -> bool:
        """Return whether a seed's rows are of several distributions."""
        return bool(self.mixed) and seed == len(self.seeds) - 1

    @property
    def unchanged_inputs(self) -> tuple[str, ...]:
        """Names of inputs that never change, though the task does not say that they are constants.

        A kernel that leaves them out looks the same as one that reads them.
        """
        known = zip(self.source_slots, self.prepared.known_inputs, strict=False)
        return tuple(
            slot.name
            for slot, is_known in known
            if is_known and not slot.redrawn_as and slot.name not in self.prepared.task.constants
        )

    @property
    def output_slots(self) -> tuple[TensorSlot, ...]:
        """Slots of the outputs, in order."""
        return tuple(s for s in self.slots if s.role == TensorRole.OUTPUT)

    def message(self) -> tuple[Draw, tuple[int, ...]]:
        """Return the draw as runners get it, and the descriptors beside it."""
        handles, descriptors = self.memory.passes(self.buffers)
        draw = Draw(
            draw=self.handle,
            workload=self.workload,
            size_bytes=self.buffers[0].size_bytes,
            slots=self.slots,
            seed_count=len(self.buffers),
            handles=handles,
            is_lean=self.is_lean,
        )
        return draw, descriptors

    def address(self, seed: int, slot: TensorSlot, copy: int = 0) -> int:
        """Return where a tensor of a loaded seed lies; `copy` picks one of an output."""
        return self._buffer(seed).address + slot.offsets[copy]

    def load(self, seed: int) -> None:
        """Put another seed's inputs into the buffer of a lean draw, and poison its outputs.

        Raises:
            InvalidArgumentError: the draw is not lean, or has no such seed.
        """
        if not self.is_lean or not 0 <= seed < len(self.seeds):
            raise InvalidArgumentError(f"draw {self.handle} cannot load seed {seed}", field="seed")
        self.drop_copies()
        self._loaded = seed
        self._fill(seed)
        self.poison()
        self._let_go()

    def drop_copies(self) -> None:
        """Forget what can be made again from the seeds."""
        self._expected.clear()
        self._expected_call = None
        self._sets.clear()
        self._ordinary = None

    def poison(
        self, *, seeds: Sequence[int] | None = None, slots: Sequence[int] | None = None
    ) -> None:
        """Poison the output slots of every loaded seed, or of some; all slots, or some."""
        for seed in self.loaded if seeds is None else seeds:
            for output in self.output_slots:
                for slot in range(len(output.offsets)) if slots is None else slots:
                    address = self.address(seed, output, slot)
                    byte = POISON_BYTES[(self._poisoned_times + slot) % len(POISON_BYTES)]
                    self.memory.fill(address, output.size_bytes, byte)
        self._poisoned_times += 1  # a lean draw has one copy for all runs
        self.memory.synchronize()

    def modified_inputs(self, seed: int) -> tuple[str, ...]:
        """Return the names of inputs and parameters that differ from the pristine copies."""
        return tuple(
            slot.name
            for slot, pristine in zip(self.source_slots, self.input_set(seed).pristine, strict=True)
            if not self.memory.same_bytes(
                self.address(seed, slot), pristine.data_ptr(), slot.size_bytes
            )
        )

    def stray_writes(self) -> tuple[str, ...]:
        """Return the names of tensors around which something was written."""
        touched = (name for buffer in self._guarded for name in buffer.touched())
        return tuple(dict.fromkeys(touched))

    @property
    def guard_bytes(self) -> int:
        """Bytes of all guards."""
        return sum(buffer.guard_bytes for buffer in self._guarded)

    def change(self, seed: int, *, is_sparse: bool, with_parameters: bool) -> bool:
        """Change a few elements of a seed's inputs, in place; return whether any could be.

        Outputs are left as they are.
        """
        change = InputChange(
            # Told by the draw's own seeds, so that a record can be run again.
            other_seed=(self.seeds[seed] ^ _CHANGE_STREAM) % 2**63,
            is_sparse=is_sparse,
            with_parameters=with_parameters,
        )
        self._expected.pop(seed, None)
        if self._patches.pop(seed, None) is not None:  # what was changed before is put back
            self._sets.pop(seed, None)
            self._copy_sources(seed)
        places = choose_places(self.input_set(seed), change)
        self._let_go()
        patches = replacements(places, self.prepared.input_set(change.other_seed))
        self._patches[seed] = patches
        self._sets.pop(seed, None)
        for slot, replaced in zip(self.source_slots, patches, strict=True):
            if replaced is not None:
                patch(self._view(seed, slot), replaced)
        self.memory.synchronize()
        return any(replaced is not None for replaced in patches)

    def expected_unchanged(self, seed: int) -> tuple[ExpectedOutput, ...]:
        """Return what was expected before the seed's inputs were changed, computed anew."""
        if self.is_lean:
            self.drop_copies()
        return self._expect(self._drawn(seed).as_admitted())

    def input_set(self, seed: int) -> InputSet:
        """Return a seed's pristine tensors, drawn again when they are not held."""
        if seed not in self._sets:
            drawn, patches = self._drawn(seed).as_admitted(), self._patches.get(seed)
            if patches is not None:
                drawn = changed(drawn, patches, self._own(drawn))
            self._sets[seed] = drawn
        return self._sets[seed]

    def timed_sets(self) -> tuple[InputSet, ...]:
        """Return sets to time PyTorch on: of a lean draw one, which is not kept."""
        if self.is_lean:
            self.drop_copies()
            timed = self.reference_set(self._loaded)
            self._let_go()
            return (timed,)
        return tuple(self.input_set(seed) for seed in range(len(self.seeds)))

    def expected(self, seed: int) -> tuple[ExpectedOutput, ...]:
        """Return the expected outputs; the reference runs when they are not held.

        Raises:
            TaskInvalidError: the reference raises, or its outputs' shapes depend on values.
        """
        if seed not in self._expected:
            self._expected[seed] = self._expect(self.reference_set(seed))
            self._let_go()
        return self._expected[seed]

    def expect_without_inputs(self, seed: int) -> None:
        """Hold outputs of a seed whose inputs are zeros to what parameters alone tell."""
        self._expected[seed] = tuple(e.without_inputs() for e in self.expected(seed))

    def expected_of_call(self, seed: int, values: CallValues | None) -> tuple[ExpectedOutput, ...]:
        """Return what a timed call on a seed's inputs was to give; else as `expected`."""
        if values is None or not any(self.redrawn):
            return self.expected(seed)
        if self._expected_call is None or self._expected_call[0] != (seed, values):
            self._expected_call = None
            with self.call_set(seed, values) as reference:
                expected = self._expect(reference)
            self._expected_call = ((seed, values), expected)
            self._let_go()
        return self._expected_call[1]

    def reference_set(self, seed: int) -> InputSet:
        """Return what the reference runs on: a lean draw's buffer, where that is safe.

        That is: where no kernel can write to it now, and none has changed it.
        """
        pristine = self.input_set(seed)
        if not (self.is_lean and self.memory.rests_between_runs) or self.modified_inputs(seed):
            return pristine
        count, views = len(pristine.inputs), [self._view(seed, slot) for slot in self.source_slots]
        state = dict(zip(pristine.state, views[count:], strict=True))
        self._let_go()
        return pristine.with_values(views[:count], state)

    @contextmanager
    def call_set(self, seed: int, values: CallValues | None) -> Iterator[InputSet]:
        """Yield a seed's tensors with the values that they had in a timed call; None: as drawn.

        A lean draw's buffer has these values meanwhile.
        """
        reference = self.reference_set(seed)
        if values is None or not any(self.redrawn):
            yield reference
            return
        redrawn = values.redrawn(self.redrawn, len(reference.inputs))
        if reference is self._sets.get(seed):
            own = self._own(reference)
            if self.is_lean:
                self.drop_copies()  # they are changed where they lie, and no longer as drawn
            yield with_call_values(reference, redrawn, values, self.memory, own)
            return
        chosen = [(number, dtype) for number, dtype in enumerate(redrawn) if dtype]
        for number, dtype in chosen:
            change(reference.pristine[number], number, dtype, values, self.memory)
        try:
            yield reference
        finally:
            as_drawn = CallValues(key=values.key, index=0)
            for number, dtype in chosen:
                tensor = reference.pristine[number]
                change(tensor, number, dtype, as_drawn, self.memory, before=values.index)

    def output_tensor(self, seed: int, output: int, slot: int) -> torch.Tensor:
        """Return a view of what a runner wrote; a copy where the candidate must not interfere."""
        return self._view(seed, self.output_slots[output], slot)

    def element_count(self, output: int) -> int:
        """Return the number of an output's elements."""
        return math.prod(self.output_slots[output].shape)

    def output_bytes(self, seed: int, output: int, slot: int) -> torch.Tensor:
        """Return a view of what a runner wrote, one element for each byte."""
        return self.output_tensor(seed, output, slot).reshape(-1).view(torch.uint8)

    def _own(self, drawn: InputSet) -> tuple[bool, ...]:
        """Return which tensors of a set may be changed in place: of a lean draw those of its own.

        Parameters are drawn anew each time; inputs may be constants of the task's file.
        """
        if not self.is_lean:
            return (False,) * len(drawn.pristine)
        return (*self.prepared.own_inputs, *(True for _ in drawn.state))

    def _buffer(self, seed: int) -> SharedBuffer:
        assert seed in self.loaded, f"seed {seed} lies in no buffer"
        return self.buffers[0 if self.is_lean else seed]

    def _view(self, seed: int, slot: TensorSlot, copy: int = 0) -> torch.Tensor:
        dtype = getattr(torch, slot.dtype)
        if not slot.size_bytes:
            return torch.empty(slot.shape, dtype=dtype, device=self.memory.torch_device)
        start = slot.offsets[copy]
        part = self.memory.bytes_of(self._buffer(seed), start, slot.size_bytes)
        return part.view(dtype).view(slot.shape)

    def _let_go(self) -> None:
        """Give pristine tensors up where they are drawn again for each use."""
        if self.is_lean:
            self._sets.clear()
            self._ordinary = None

    def _fill(self, seed: int) -> None:
        self._copy_sources(seed)
        self._guarded[0 if self.is_lean else seed].write()

    def _copy_sources(self, seed: int) -> None:
        for slot, tensor in zip(self.source_slots, self.input_set(seed).pristine, strict=True):
            if tuple(tensor.shape) != slot.shape:
                raise TaskInvalidError(
                    f"get_inputs() gives {slot.name!r} of shape {tuple(tensor.shape)}, before"
                    f" of shape {slot.shape}"
                )
            self.memory.copy(self.address(seed, slot), tensor.data_ptr(), slot.size_bytes)

    def _guard(self) -> list[GuardedBuffer]:
        guards = guards_of(self.slots, self.buffers[0].size_bytes)
        byte = random.SystemRandom().randrange(1, native.POISON_BYTE)
        return [GuardedBuffer(self.memory, buffer, guards, byte) for buffer in self.buffers]

    def _drawn(self, seed: int) -> InputSet:
        """Return a seed's inputs before any change in place."""
        if not self.distributions:
            # The first seed's are as the file has them.
            return self._as_in_a_call(seed) if seed else self._telling(seed)
        if self.has_mixed_rows(seed):
            return with_mixed_rows(self.prepared, self._as_in_a_call(seed), self.mixed)
        distribution = self.distributions[seed]
        if has(distribution, Trait.OF_CALL):
            # Between its outliers a row must look like those of a timed call.
            return with_distribution(self.prepared, self._as_in_a_call(seed), distribution)
        if self._ordinary is None or self._ordinary.seed != self.seeds[seed]:
            self._ordinary = self.prepared.input_set(self.seeds[seed], is_telling=True)
        return with_distribution(self.prepared, self._ordinary, distribution)

    def _telling(self, seed: int) -> InputSet:
        return self.prepared.input_set(self.seeds[seed], is_telling=True, in_place=self.is_lean)

    def _as_in_a_call(self, seed: int) -> InputSet:
        """Return a set on values that a timed call could have: nothing tells one from the other.

        So inputs that get_inputs draws alike under every seed differ, too.
        """
        drawn = self._telling(seed)
        values = CallValues(key=(self.seeds[seed] ^ _CALL_STREAM) % 2**63, index=1)
        return with_call_values(drawn, self.redrawn, values, self.memory, self._own(drawn))

    def _expect(self, input_set: InputSet) -> tuple[ExpectedOutput, ...]:
        outputs = input_set.expected()
        shapes = [tuple(output.shape) for output in outputs]
        if shapes != [slot.shape for slot in self.output_slots]:
            raise TaskInvalidError(f"the outputs' shapes depend on the inputs: {shapes}")
        is_scaled = self.prepared.task.tolerance is None
        return tuple(expect(o, is_scaled=is_scaled, memory=self.memory) for o in outputs)


def _with_redraws(
    slots: tuple[TensorSlot, ...], redrawn: tuple[str, ...]
) -> tuple[TensorSlot, ...]:
    """Return slots that say as what they are redrawn; outputs come last, and never are."""
    redrawn_slots = [
        dataclasses.replace(slot, redrawn_as=dtype)
        for slot, dtype in zip(slots, redrawn, strict=False)
    ]
    return (*redrawn_slots, *slots[len(redrawn_slots) :])
