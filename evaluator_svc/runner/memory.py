"""A plan's own memory: scratch, one for all runs, and what `prepare` fills, one for each seed.

On a CPU results of library calls are scratch, too. Scratch is scrubbed before every run, and every
byte around the buffers is a guard: nothing of a call is left to the next.
"""

import secrets
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from evaluator_svc.messages.placement import PAGE_BYTES, place, whole
from evaluator_svc.runner.faults import fault, memory_faults
from evaluator_svc.runner.surroundings import Place, Range, Surroundings, check_trespass
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.plan.sequence import LaunchSequence

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
        byte = secrets.randbelow(_NAN_BYTE - 1) + 1
        # One scratch for all: the runs follow each other.
        kinds = ("scratch", "result") if device.is_host_memory else ("scratch",)
        self._scratch = self._allocate(kinds, byte)
        self._prepared = [self._allocate(("prepared",), byte) for _ in range(seed_count)]
        self._pristine: list[Buffers] = []
        self.scratch = tuple(
            (position, self.buffers[position].size_bytes)
            for position in self._scratch.addresses
            if self.buffers[position].size_bytes
        )
        """(position, size) of scratch: its content is unspecified when a call begins, also of what
        a step of the call clears later."""
        self._next_byte = _NAN_BYTE

    def addresses(self, tensors: Mapping[str, int], seed: int) -> list[int]:
        """Return the address of every buffer, in order; 0 for those that a call decides.

        Args:
            tensors: Addresses of the name table's tensors.
            seed: Whose weights were prepared.
        """
        own = {**self._scratch.addresses, **self._prepared[seed].addresses}
        return [
            tensors[buffer.name] if buffer.kind == "tensor"
            else own.get(position, 0)
            for position, buffer in enumerate(self.buffers)
        ]  # fmt: skip

    @property
    def guards(self) -> tuple[Range, ...]:
        """All bytes around the buffers."""
        held = (self._scratch, *self._prepared)
        return tuple(guard for buffers in held for guard in buffers.surroundings.guards)

    def scrub(self, libraries: Iterable[tuple[int, int]] = ()) -> None:
        """Overwrite scratch, with NaN at first, later with any byte, and processors' own memory.

        The bytes around all buffers, too, and (address, bytes) of what libraries hold.
        """
        self._device.scrub()
        own = self._scratch.addresses
        written = (*((own[at], size_bytes) for at, size_bytes in self.scratch), *libraries)
        filled = tuple((address, size_bytes, self._next_byte) for address, size_bytes in written)
        self._device.fill_all((*filled, *self.guards))
        self._next_byte = secrets.randbelow(_NAN_BYTE + 1)

    @property
    def prepared(self) -> tuple[tuple[int, int], ...]:
        """(position, size) of what `prepare` makes."""
        return tuple(
            (position, self.buffers[position].size_bytes)
            for position in self._prepared[0].addresses
            if self.buffers[position].size_bytes
        )

    def sealed_into(self, seed: int) -> list[int]:
        """Return the addresses of the copies that `check` looks at, in the order of `prepared`."""
        if not self._pristine:
            return []
        return [self._pristine[seed].addresses[position] for position, _ in self.prepared]

    def seal(self) -> None:
        """Remember what was prepared, for `check`."""
        if not self._pristine:
            with memory_faults("memory for copies of what `prepare` made"):
                self._pristine = [self._allocate(("prepared",), _NAN_BYTE) for _ in self._prepared]
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
        self.check_guards()
        check_trespass(self._device)

    def check_guards(self) -> None:
        """See that nothing was written around the buffers.

        Raises:
            CandidateFaultError: something was.
        """
        for buffers in (self._scratch, *self._prepared):
            buffers.surroundings.check()

    def _pairs(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield (position, size, address, address of the copy) of every prepared buffer."""
        for prepared, pristine in zip(self._prepared, self._pristine, strict=False):
            for position, address in prepared.addresses.items():
                size_bytes = self.buffers[position].size_bytes
                if size_bytes:
                    yield position, size_bytes, address, pristine.addresses[position]

    def _allocate(self, kinds: tuple[str, ...], byte: int) -> "Buffers":
        specs = {i: b for i, b in enumerate(self.buffers) if b.kind in kinds}
        end, places = PAGE_BYTES, {}
        for position, spec in specs.items():
            start, end = place(spec.size_bytes, end)
            places[position] = Place(name=spec.name, start=start, size_bytes=spec.size_bytes)
        return Buffers(self._device, places, end if places else 0, byte)


class Buffers:
    """Buffers of one kind in an allocation of their own.

    Args:
        device: Native device that allocates.
        places: Where they lie, by position in the plan.
        size_bytes: Of all; 0: there are none.
        byte: What guards hold.
    """

    def __init__(
        self, device: Any, places: Mapping[int, Place], size_bytes: int, byte: int
    ) -> None:
        whole_bytes = whole(size_bytes, device.unit_bytes) if size_bytes else 0
        self._memory = device.allocate(whole_bytes) if whole_bytes else None
        base = int(self._memory.address) if self._memory is not None else 0
        self.addresses = {position: base + place.start for position, place in places.items()}
        self.surroundings = Surroundings(
            device, address=base, size_bytes=whole_bytes, places=places.values(), byte=byte
        )
        self.surroundings.write()
