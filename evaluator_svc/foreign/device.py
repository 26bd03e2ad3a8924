"""The device of torch in a process of a foreign kernel: shared buffers, copies, the clock."""

from typing import Any, Self

from evaluator_svc.judge.memory.cuda_memory import CudaMemory
from evaluator_svc.judge.memory.judge_memory import JudgeMemory, SharedBuffer, open_memory
from evaluator_svc.messages.draw import Draw
from evaluator_svc.processes.channel import close_descriptors
from kernel_foundry_native import _core


class ForeignDevice:
    """What native code does for a process of others, with the functions of the judge's memory."""

    def __init__(self, memory: JudgeMemory) -> None:
        self.memory = memory

    @classmethod
    def open(cls, device_id: str) -> Self:
        """Open a device such as "cuda:0"; all but GPUs work in host memory.

        Raises:
            BackendUnavailableError: the device, or a torch for it, is not there.
        """
        return cls(open_memory(device_id))

    def open_buffers(self, draw: Draw, descriptors: tuple[int, ...]) -> list[SharedBuffer]:
        """Return the shared buffers of a draw, mapped; descriptors are closed."""
        try:
            if isinstance(self.memory, CudaMemory):
                return [
                    self.memory.open_shared(bytes.fromhex(handle), draw.size_bytes)
                    for handle in draw.handles
                ]
            return [_core.SharedBuffer.open(fd, draw.size_bytes) for fd in descriptors]
        finally:
            close_descriptors(descriptors)

    def options(self, *, warmup_calls: int, samples: int, is_cold: bool) -> Any:
        """Return options of the measuring loop for a fixed number of samples of one set."""
        return self.memory.options_type(
            warmup_calls=warmup_calls,
            min_samples=samples,
            max_samples=samples,
            max_seconds=1e9,
            target_half_width=0.0,
            set_count=1,
            is_cold=is_cold,
        )

    def release(self) -> None:
        """Nothing is to be given up before the process ends."""
