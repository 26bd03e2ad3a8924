"""An open CUDA device with the kernels of these tests, and their data."""

from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

import kernel_foundry_native as native

SOURCE = """
extern "C" __global__ void scale(const float* in, float* out, float factor, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = in[i] * factor;
}

extern "C" __global__ void slow_copy(const float* in, float* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int turn = 0; turn < 2000; ++turn) __nanosleep(1000);
  if (i < count) out[i] = in[i];
}

extern "C" __global__ void illegal() { *(volatile int*)16 = 1; }

extern "C" __global__ void endless() {
  for (volatile int turn = 0;; ++turn) {}
}
"""
KERNELS = ("scale", "slow_copy", "illegal", "endless")
GROUP = 128


class CudaCase:
    """A device, the kernels loaded, and buffers that live as long as it does."""

    def __init__(self) -> None:
        """Open the first device and build for it."""
        self.module: ModuleType = native.device_kind("cuda")
        self.device: Any = self.module.open_device()
        compiler = self.module.open_compiler(architecture=self.device.architecture)
        built = compiler.compile(source=SOURCE, options=[], kernels=KERNELS)
        self.program: Any = self.device.load(code=built.code, kernels=KERNELS)
        self._buffers: list[Any] = []

    def empty(self, size_bytes: int) -> int:
        """Return the address of new memory."""
        buffer = self.device.allocate(size_bytes)
        self._buffers.append(buffer)
        return int(buffer.address)

    def upload(self, array: npt.NDArray[Any]) -> int:
        address = self.empty(array.nbytes)
        self.device.copy(address, array.ctypes.data, array.nbytes)
        return address

    def download(self, address: int, count: int) -> npt.NDArray[np.float32]:
        array = np.zeros(count, dtype=np.float32)
        self.device.copy(array.ctypes.data, address, array.nbytes)
        return array

    def launch(self, sequence: Any, kernel: str, arguments: list[Any], count: int = 1) -> None:
        """Append a launch with a work-item for each element."""
        sequence.launch(
            program=self.program,
            kernel=kernel,
            grid=((count + GROUP - 1) // GROUP, 1, 1),
            block=(GROUP, 1, 1),
            dimensions=1,
            arguments=arguments,
        )

    def launch_scale(
        self, sequence: Any, source: int, target: int, factor: float, count: int
    ) -> None:
        scalar = self.module.scalar_argument
        buffers = [self.module.buffer_argument(source), self.module.buffer_argument(target)]
        self.launch(
            sequence,
            "scale",
            [*buffers, scalar("float32", factor), scalar("int32", count)],
            count,
        )

    def sequence(self) -> Any:
        return self.module.LaunchSequence(self.device)

    def close(self) -> None:
        """Give everything back."""
        self._buffers.clear()
        self.device.release()
