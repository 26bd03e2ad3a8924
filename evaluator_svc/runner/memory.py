"""A plan's own memory: scratch, one for all runs, and what `prepare` fills, one for each seed.

Scratch is spoilt before every run, and guarded bytes lie behind each buffer: nothing of a call is
left to the next. Knows nothing of launches.
"""

import ctypes
import secrets
from collections.abc import Iterator, Mapping
from typing import Any, Final

from evaluator_svc.messages.exchange import GUARD_BYTES
from evaluator_svc.runner.faults import fault, memory_faults
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.plan.sequence import Clear, LaunchSequence

_NAN_BYTE: Final = 0xFF
"""NaN as float, -1 as integer."""


def plan_memory(device: Any, sequence: LaunchSequence, *, seed_count: int) -> "PlanMemory":
    """Return the memory of a bound plan.

    Raises:
        CandidateFaultError: it is not to be had.
    """
    held = sequence.scratch_bytes + seed_count * sequence.prepared_bytes
    with memory_faults(f"the plan's own memory of {held} bytes"):
        return PlanMemory(device, sequence, seed_count=seed_count)


class PlanMemory:
    """Memory of a bound plan, beside the tensors of the name table.

    Args:
        device: Native device that allocates.
        sequence: The bound plan.
        seed_count: Sets of weights.
    """

    def __init__(self, device: Any, sequence: LaunchSequence, *, seed_count: int) -> None:
        self.buffers = sequence.buffers
        self._device = device
        # One scratch for all: the runs follow each other.
        self._scratch = self._allocate("scratch")
        self._prepared = [self._allocate("prepared") for _ in range(seed_count)]
        self._pristine: list[dict[int, Any]] = []
        cleared = {step.buffer for step in sequence.steps if isinstance(step, Clear)}
        self.spoilt = tuple(
            (position, self.buffers[position].size_bytes)
            for position in self._scratch
            if position not in cleared and self.buffers[position].size_bytes
        )
        """(position, size) of scratch whose content is unspecified when a call begins."""
        self._guard_byte = secrets.randbelow(_NAN_BYTE - 1) + 1
        for address, _name in self._guards():
            device.fill(address, GUARD_BYTES, self._guard_byte)
        self._next_byte = _NAN_BYTE

    def addresses(self, tensors: Mapping[str, int], seed: int) -> list[int]:
        """Return the address of every buffer, in order; 0 for those that a call decides.

        Args:
            tensors: Addresses of the name table's tensors.
            seed: Whose weights were prepared.
        """
        own = {**self._scratch, **self._prepared[seed]}
        return [
            tensors[buffer.name] if buffer.kind == "tensor"
            else own[position].address if position in own
            else 0
            for position, buffer in enumerate(self.buffers)
        ]  # fmt: skip

    def spoil(self) -> None:
        """Overwrite scratch, with NaN at first, later with any byte, and processors' own memory."""
        self._device.scrub()
        for position, size_bytes in self.spoilt:
            self._device.fill(self._scratch[position].address, size_bytes, self._next_byte)
        self._next_byte = secrets.randbelow(_NAN_BYTE + 1)

    @property
    def prepared(self) -> tuple[tuple[int, int], ...]:
        """(position, size) of what `prepare` makes."""
        return tuple(
            (position, self.buffers[position].size_bytes)
            for position in self._prepared[0]
            if self.buffers[position].size_bytes
        )

    def sealed_into(self, seed: int) -> list[int]:
        """Return the addresses of the copies that `check` looks at, in the order of `prepared`."""
        if not self._pristine:
            return []
        return [int(self._pristine[seed][position].address) for position, _ in self.prepared]

    def seal(self) -> None:
        """Remember what was prepared, for `check`."""
        if not self._pristine:
            with memory_faults("memory for copies of what `prepare` made"):
                self._pristine = [self._allocate("prepared") for _ in self._prepared]
        for _, size_bytes, prepared, pristine in self._pairs():
            self._device.copy(to=pristine, from_=prepared, size_bytes=size_bytes)
        self._device.synchronize()

    def check(self) -> None:
        """See that what was prepared is as it was, and nothing was written behind a buffer.

        Raises:
            CandidateFaultError: it is not: a call could leave something to the next.
        """
        for position, size_bytes, prepared, pristine in self._pairs():
            if not self._device.same_bytes(prepared, pristine, size_bytes):
                name = self.buffers[position].name
                raise fault(
                    EvaluationOutcome.WRONG_RESULT,
                    FindingKind.INPUT_MODIFIED,
                    f"the kernels of launch changed {name}, which prepare has made",
                    hint="write only to outputs and scratch",
                )
        for address, name in self._guards():
            if self._read(address, GUARD_BYTES) != bytes([self._guard_byte]) * GUARD_BYTES:
                raise fault(
                    EvaluationOutcome.WRONG_RESULT,
                    FindingKind.STRAY_WRITE,
                    f"a kernel wrote beyond the end of {name}",
                    hint="check every index of a store against the buffer's size",
                )

    def _read(self, address: int, size_bytes: int) -> bytes:
        # Compared here: a runner on a GPU would have to build a kernel for it.
        content = (ctypes.c_ubyte * size_bytes)()
        self._device.copy(to=ctypes.addressof(content), from_=address, size_bytes=size_bytes)
        return bytes(content)

    def _guards(self) -> Iterator[tuple[int, str]]:
        """Yield the address of every guard, and the name of the buffer before it."""
        for held in (self._scratch, *self._prepared):
            for position, buffer in held.items():
                spec = self.buffers[position]
                yield buffer.address + spec.size_bytes, spec.name

    def _pairs(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield (position, size, address, address of the copy) of every prepared buffer."""
        for prepared, pristine in zip(self._prepared, self._pristine, strict=False):
            for position, buffer in prepared.items():
                size_bytes = self.buffers[position].size_bytes
                if size_bytes:
                    yield position, size_bytes, buffer.address, pristine[position].address

    def _allocate(self, kind: str) -> dict[int, Any]:
        return {
            position: self._device.allocate(buffer.size_bytes + GUARD_BYTES)
            for position, buffer in enumerate(self.buffers)
            if buffer.kind == kind
        }
