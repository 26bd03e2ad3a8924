"""Starts builders and runners: their environment, their lock, their first two messages.

Knows nothing of candidates; see `locked_process` for the child's side.
"""

import os
import sys
import tempfile
from typing import Final

from evaluator_svc.channel import ChannelError
from evaluator_svc.messages import Configure, Failed, Ready
from evaluator_svc.process import ChildProcess, ProcessCommand, ProcessLauncher
from evaluator_svc.sandbox import bubblewrap
from evaluator_svc.sandbox.confinement import Confinement
from evaluator_svc.sandbox.host_paths import DEVICE_NODES, package_root, readable_paths
from evaluator_svc.settings import EvaluatorSettings
from kernel_foundry.domain.device import IsolationReport
from kernel_foundry.errors import ProcessLostError

BUILDER: Final = "evaluator_svc.builder"
RUNNER: Final = "evaluator_svc.runner"

_START_SECONDS: Final = 60.0
"""Loading a driver from a cold disk."""
_END_SECONDS: Final = 1.0
"""From the channel's end to the process's own."""
_BUILDER_CPU_SECONDS: Final = 600
_RUNNER_CPU_SECONDS: Final = 3600
"""Far beyond any deadline: these only end what nobody watches any more."""
_FILE_BYTES: Final = 64 << 20
_KEPT_VARIABLES: Final = ("LD_LIBRARY_PATH", "OCL_ICD_FILENAMES", "KERNEL_FOUNDRY_CUDA_DRIVER")
"""What a driver may need to be found; all else is dropped."""


class LockedStarter:
    """Starts locked processes for any device.

    Args:
        settings: Threads, memory and what isolation is wanted.
        launcher: Starts processes.
    """

    def __init__(self, settings: EvaluatorSettings, launcher: ProcessLauncher) -> None:
        self._settings = settings
        self._launcher = launcher
        self._readable = readable_paths()

    def start(self, module: str, *, kind: str, index: int) -> tuple[ChildProcess, Ready]:
        """Start `module` for a device and wait until it is ready.

        Raises:
            IsolationUnavailableError: nothing locks it in, and that is not allowed.
            ProcessLostError: it ended before it was ready.
        """
        without = self._why_no_bubblewrap()
        scratch = None if not without else tempfile.TemporaryDirectory(prefix="kernel-foundry-")
        folder = bubblewrap.SCRATCH if scratch is None else scratch.name
        command = ProcessCommand(
            module=module,
            environment=self._environment(folder),
            wrapping=None if without else self._wrapping(folder),
            accepts_descriptors=False,
        )
        process = self._launcher.start(command)
        process.scratch = scratch
        configure = Configure(
            kind=kind,
            index=index,
            confinement=self._confinement(module, folder),
            outer=() if without else ("bubblewrap",),
            unsandboxed=self._settings.allow_unsandboxed,
        )
        ready = _configure(process, configure)
        if without:
            ready = _with_missing(ready, f"bubblewrap: {without}")
        return process, ready

    def _why_no_bubblewrap(self) -> str:
        if not self._settings.use_bubblewrap:
            return "switched off"
        return bubblewrap.probe(self._wrapping(bubblewrap.SCRATCH), sys.executable)

    def _wrapping(self, scratch: str) -> bubblewrap.Wrapping:
        return bubblewrap.Wrapping(
            readable=self._readable,
            devices=("/dev/dri",),
            environment=self._environment(scratch),
        )

    def _environment(self, scratch: str) -> tuple[tuple[str, str], ...]:
        threads = str(self._settings.thread_count)
        kept = {n: os.environ[n] for n in _KEPT_VARIABLES if n in os.environ}
        variables = {
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "HOME": scratch,
            "TMPDIR": scratch,
            "PYTHONPATH": package_root(),
            "PYTHONDONTWRITEBYTECODE": "1",
            "DPCPP_CPU_NUM_CUS": threads,
            "OMP_NUM_THREADS": threads,
            **kept,
        }
        return tuple(variables.items())

    def _confinement(self, module: str, scratch: str) -> Confinement:
        is_builder = module == BUILDER
        settings = self._settings
        return Confinement(
            readable=self._readable,
            devices=DEVICE_NODES,
            scratch=scratch,
            memory_bytes=settings.builder_memory_bytes if is_builder else settings.runner_bytes,
            cpu_seconds=_BUILDER_CPU_SECONDS if is_builder else _RUNNER_CPU_SECONDS,
            file_bytes=_FILE_BYTES,
        )


def _configure(process: ChildProcess, configure: Configure) -> Ready:
    try:
        received = process.ask(configure, Ready, Failed, timeout_seconds=_START_SECONDS)
    except ChannelError as error:
        process.wait(_END_SECONDS)
        end = process.kill()
        how = f"{end.describe()}: {end.last_words[-800:]}" if end is not None else str(error)
        raise ProcessLostError(f"a process ended before it was ready: {how}", cause=how) from error
    if isinstance(received.message, Failed):
        process.kill()
        raise received.message.error()
    ready: Ready = received.message
    return ready


def _with_missing(ready: Ready, reason: str) -> Ready:
    isolation = IsolationReport(
        mechanisms=ready.isolation.mechanisms, missing=(reason, *ready.isolation.missing)
    )
    return Ready(
        process_id=ready.process_id,
        isolation=isolation,
        device=ready.device,
        compiler_version=ready.compiler_version,
        unavailable=ready.unavailable,
    )
