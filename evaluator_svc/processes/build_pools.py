"""Ready builders and inspectors, shared by all devices that they can work for.

A CUDA builder needs an architecture and no device, so the devices of one kind share theirs; a
SYCL builder opens the device. An inspector needs neither.
"""

import threading
from typing import Final

from evaluator_svc.hardware.device_lock import DeviceLock
from evaluator_svc.messages.locked import Ready
from evaluator_svc.processes.forking import BUILDER, INSPECTOR
from evaluator_svc.processes.locked_starter import LockedStarter
from evaluator_svc.processes.process import ChildProcess
from evaluator_svc.processes.spare_pool import SparePool
from evaluator_svc.settings import EvaluatorSettings, usable_cores
from kernel_foundry.errors import BackendUnavailableError

_DEVICES_OF_A_HOST: Final = 2
"""GPUs that the processes kept ready are meant to feed at full speed; more share them."""

_Target = tuple[str, str, int, str]
"""Module, device kind, device number, architecture."""


class BuildPools:
    """One pool of builders and one of inspectors for each target, made when first asked for."""

    def __init__(self, settings: EvaluatorSettings, starter: LockedStarter) -> None:
        self._settings = settings
        self._starter = starter
        self._lock = threading.Lock()
        self._pools: dict[_Target, SparePool] = {}

    def builders_of_device(self, kind: str, index: int, device_lock: DeviceLock) -> SparePool:
        """Return builders that open a device and share its lock."""
        return self._pool((BUILDER, kind, index, ""), device_lock, self._settings.spare_processes)

    def builders_of_architecture(self, kind: str, architecture: str) -> SparePool:
        """Return builders that need no device."""
        return self._pool((BUILDER, kind, 0, architecture), DeviceLock(), self._shared_size())

    def inspectors_of_device(self, kind: str, index: int, device_lock: DeviceLock) -> SparePool:
        """Return inspectors that share a device's lock, whose kernels run on the host's cores."""
        return self._pool((INSPECTOR, kind, index, ""), device_lock, self._settings.spare_processes)

    def inspectors_of_kind(self, kind: str) -> SparePool:
        """Return inspectors for all devices and architectures of a kind."""
        return self._pool((INSPECTOR, kind, 0, ""), DeviceLock(), self._shared_size())

    def describe(self, kind: str, index: int, architecture: str) -> Ready:
        """Start a builder and return what it said of itself; `unavailable` when it cannot build."""
        process, ready = self._starter.start(
            BUILDER, kind=kind, index=index, architecture=architecture
        )
        process.kill()
        return ready

    def try_inspector(self, kind: str) -> None:
        """Start an inspector and end it: what locks it in is known then (`LockedStarter.reports`).

        Raises:
            IsolationUnavailableError: nothing locks it in, and that is not allowed.
        """
        self._start(INSPECTOR, kind, 0, "").kill()

    def close(self) -> None:
        """End every builder and inspector."""
        for pool in self._pools.values():
            pool.close()

    def _shared_size(self) -> int:
        return min(_DEVICES_OF_A_HOST * self._settings.spare_processes_of_gpu, usable_cores())

    def _pool(self, target: _Target, device_lock: DeviceLock, size: int) -> SparePool:
        with self._lock:
            if target not in self._pools:
                self._pools[target] = SparePool(
                    lambda: self._start(*target), device_lock=device_lock, size=size
                )
            return self._pools[target]

    def _start(self, module: str, kind: str, index: int, architecture: str) -> ChildProcess:
        process, ready = self._starter.start(
            module, kind=kind, index=index, architecture=architecture
        )
        if ready.unavailable:
            process.kill()
            raise BackendUnavailableError(ready.unavailable, device=f"{kind}:{index}")
        return process
