"""Ready builders, shared by all devices that they can build for.

A CUDA builder needs an architecture and no device, so the devices of one kind share theirs; a SYCL
builder opens the device.
"""

import threading
from typing import Final

from evaluator_svc.hardware.gate import DeviceGate
from evaluator_svc.messages.locked import Ready
from evaluator_svc.processes.locked_starter import BUILDER, LockedStarter
from evaluator_svc.processes.process import ChildProcess
from evaluator_svc.processes.spare_pool import SparePool
from evaluator_svc.settings import EvaluatorSettings, usable_cores
from kernel_foundry.errors import BackendUnavailableError

_DEVICES_OF_A_HOST: Final = 2
"""GPUs that the builders kept ready are meant to feed at full speed; more share them."""


class BuilderPools:
    """One pool of builders for each target, made when first asked for.

    Args:
        settings: How many are kept ready.
        starter: Starts them.
    """

    def __init__(self, settings: EvaluatorSettings, starter: LockedStarter) -> None:
        self._settings = settings
        self._starter = starter
        self._lock = threading.Lock()
        self._pools: dict[tuple[str, int, str], SparePool] = {}

    def of_device(self, kind: str, index: int, gate: DeviceGate) -> SparePool:
        """Return builders that open a device and share its gate."""
        return self._pool((kind, index, ""), gate, self._settings.spare_processes)

    def of_architecture(self, kind: str, architecture: str) -> SparePool:
        """Return builders that need no device."""
        size = _DEVICES_OF_A_HOST * self._settings.spare_processes_of_gpu
        return self._pool((kind, 0, architecture), DeviceGate(), min(size, usable_cores()))

    def describe(self, kind: str, index: int, architecture: str) -> Ready:
        """Start a builder and return what it said of itself; `unavailable` when it cannot build."""
        process, ready = self._starter.start(
            BUILDER, kind=kind, index=index, architecture=architecture
        )
        process.kill()
        return ready

    def close(self) -> None:
        """End every builder."""
        for pool in self._pools.values():
            pool.close()

    def _pool(self, key: tuple[str, int, str], gate: DeviceGate, size: int) -> SparePool:
        with self._lock:
            if key not in self._pools:
                self._pools[key] = SparePool(lambda: self._start(*key), gate=gate, size=size)
            return self._pools[key]

    def _start(self, kind: str, index: int, architecture: str) -> ChildProcess:
        process, ready = self._starter.start(
            BUILDER, kind=kind, index=index, architecture=architecture
        )
        if ready.unavailable:
            process.kill()
            raise BackendUnavailableError(ready.unavailable, device=f"{kind}:{index}")
        return process
