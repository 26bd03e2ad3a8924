"""A plan's own memory: scratch, one for all runs, and what `prepare` fills, one for each seed.

Knows nothing of launches.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from evaluator_svc.runner.faults import fault
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.plan.sequence import BufferSpec, LaunchSequence


def plan_memory(device: Any, sequence: LaunchSequence, *, seed_count: int) -> "PlanMemory":
    """Return the memory of a bound plan.

    Raises:
        CandidateFaultError: it is not to be had.
    """
    import kernel_foundry_native as native

    try:
        return PlanMemory(device, sequence.buffers, seed_count=seed_count)
    except (MemoryError, native.DriverError) as error:
        held = sequence.scratch_bytes + seed_count * sequence.prepared_bytes
        raise fault(
            EvaluationOutcome.PLAN_ERROR,
            FindingKind.MEMORY_LIMIT,
            f"{held} bytes of the plan's own memory are not to be had: {error}",
        ) from error


class PlanMemory:
    """Memory of a bound plan, beside the tensors of the name table.

    Args:
        device: Native device that allocates.
        buffers: All buffers of the plan.
        seed_count: Sets of weights.
    """

    def __init__(self, device: Any, buffers: tuple[BufferSpec, ...], *, seed_count: int) -> None:
        self.buffers = buffers
        self._device = device
        # One scratch for all: the runs follow each other.
        self._scratch = _allocate(device, buffers, "scratch")
        self._prepared = [_allocate(device, buffers, "prepared") for _ in range(seed_count)]
        self._pristine: list[dict[int, Any]] = []

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

    def seal(self) -> None:
        """Remember what was prepared, for `check`."""
        self._pristine = [_allocate(self._device, self.buffers, "prepared") for _ in self._prepared]
        for _, size_bytes, prepared, pristine in self._pairs():
            self._device.copy(to=pristine, from_=prepared, size_bytes=size_bytes)
        self._device.synchronize()

    def check(self) -> None:
        """See that what was prepared is as it was: no call leaves something to the next.

        Raises:
            CandidateFaultError: it is not.
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

    def _pairs(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield (position, size, address, address of the copy) of every prepared buffer."""
        for prepared, pristine in zip(self._prepared, self._pristine, strict=False):
            for position, buffer in prepared.items():
                size_bytes = self.buffers[position].size_bytes
                if size_bytes:
                    yield position, size_bytes, buffer.address, pristine[position].address


def _allocate(device: Any, buffers: tuple[BufferSpec, ...], kind: str) -> dict[int, Any]:
    return {
        position: device.allocate(max(buffer.size_bytes, 1))
        for position, buffer in enumerate(buffers)
        if buffer.kind == kind
    }
