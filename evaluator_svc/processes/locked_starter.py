"""Starts builders, inspectors and runners: their environment, their lock, their first two messages.

Within bubblewrap each is a new program; elsewhere it is forked from a server with all its imports.

The child's side is `locked_process.py`.
"""

import dataclasses
import sys
from typing import Final

from evaluator_svc.messages.locked import Configure, OwnFailure, Ready
from evaluator_svc.processes.channel import ChannelError
from evaluator_svc.processes.fork_client import ForkClient
from evaluator_svc.processes.forking import (
    BUILDER,
    FOREIGN,
    FORK_SERVER,
    INSPECTOR,
    RUNNER,
    ForkServerStart,
)
from evaluator_svc.processes.process import ChildProcess, ProcessCommand, ProcessLauncher
from evaluator_svc.processes.usage_watch import UsageWatch
from evaluator_svc.sandbox import bubblewrap
from evaluator_svc.sandbox.confinement import Confinement
from evaluator_svc.sandbox.host_paths import (
    PASSED_ON,
    device_nodes,
    own_variables,
    package_root,
    readable_paths,
)
from evaluator_svc.sandbox.system_calls import CallFilter
from evaluator_svc.settings import EvaluatorSettings
from kernel_foundry.domain.device import IsolationReport
from kernel_foundry.errors import ProcessLostError
from kernel_foundry.scratch import scratch_folder

_START_SECONDS: Final = 60.0
"""Loading a driver from a cold disk."""
_END_SECONDS: Final = 1.0
"""From the channel's end to the process's own."""
_BUILDER_CPU_SECONDS: Final = 600
_INSPECTOR_CPU_SECONDS: Final = 600
_RUNNER_CPU_SECONDS: Final = 3600
"""Far beyond any deadline: these only end what nobody watches any more."""
INSPECTOR_BYTES: Final = 2 << 30
"""Private memory of an inspector: the largest text that it reads takes a quarter of that."""
FILE_BYTES: Final = 16 << 20
"""Nothing that is needed writes any; output is cut here as well."""
OPEN_FILES: Final = 1024
"""Shared buffers, libraries while they load, the device: a few dozen were seen. A CUDA driver
opens several files for every GPU of the host."""
_FOREIGN_FILE_BYTES: Final = 256 << 20
"""What compilers write: an extension of torch has some megabytes, its object more."""
_FOREIGN_SCRATCH_BYTES: Final = 2 << 30
_BEFORE_LOCK_BYTES: Final = 1 << 30
"""What a driver or torch may hold when the lock comes, which adds its limit to that."""
_SAME_RULES: Final = ("capabilities:", "seccomp:")
"""What does not depend on a process's scratch folder and namespaces."""
_NOT_STARTED: Final = "not reported yet: no such process has been started"


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
        self._forks = ForkClient(
            self._start_fork_server, ForkServerStart(modules=(BUILDER, INSPECTOR, RUNNER))
        )
        self._library_forks = ForkClient(
            self._start_fork_server,
            ForkServerStart(modules=(RUNNER, FOREIGN), with_library=True),
        )
        self._watch = UsageWatch()
        self._reports: dict[str, IsolationReport] = {}
        """What the last process of each name said."""

    def start(
        self,
        module: str,
        *,
        kind: str,
        index: int,
        node: str = "",
        architecture: str = "",
        with_library: bool = False,
        counts_devices: bool = False,
        threads: int = 0,
    ) -> tuple[ChildProcess, Ready]:
        """Start `module` for a device and wait until it is ready.

        Args:
            module: `BUILDER`, `INSPECTOR`, `RUNNER` or, with the library alone, `FOREIGN`.
            kind: Device kind.
            index: Of the device among its kind.
            node: The device's own, as `Ready` told it; a runner then opens no other GPU.
            architecture: What a builder builds for; "" is the device's own.
            with_library: Whether a runner can make library calls.
            counts_devices: Whether a runner says how many devices of the kind there are.
            threads: Of the CPU device in it; 0: as the settings have it.

        Raises:
            IsolationUnavailableError: nothing locks it in, and that is not allowed.
            ProcessLostError: it ended before it was ready.
        """
        without = self._why_no_bubblewrap(module, kind, with_library=with_library)
        scratch = scratch_folder("locked") if without else None
        folder = bubblewrap.SCRATCH if scratch is None else scratch.name
        if without:
            forks = self._library_forks if with_library else self._forks
            variables = (
                *_scratch_variables(folder),
                *own_variables(PASSED_ON).items(),
                *self._device_threads(threads),
            )
            if module == FOREIGN:
                variables = (*variables, *_compiler_variables(folder))
            process = forks.fork(module, variables)
        else:
            process = self._start_in_bubblewrap(module, kind, folder, threads)
        process.scratch = scratch
        confinement = self._confinement(module, folder, kind, node, architecture)
        self._watch.add(
            process,
            memory_bytes=confinement.memory_bytes + _BEFORE_LOCK_BYTES,
            scratch_bytes=confinement.scratch_bytes,
        )
        configure = Configure(
            kind=kind,
            index=index,
            node=node,
            architecture=architecture,
            confinement=confinement,
            outer=() if without else ("bubblewrap",),
            unsafe_no_sandbox=self._settings.unsafe_no_sandbox,
            counts_devices=counts_devices,
        )
        ready = _configure(process, configure)
        ready = _told(ready, _name(module, kind, with_library=with_library), _missing(without))
        self._reports[ready.isolation.process] = ready.isolation
        return process, ready

    def reports(self, kind: str) -> tuple[IsolationReport, ...]:
        """Return what locks in a device kind's builders, inspectors, runners and library runners.

        And processes of foreign kernels, once there was one. As the last of each found it in
        force. Before the first library runner, which takes
        seconds to start, what it shares with a runner is told.
        """
        found = [self._reports.get(_name(m, kind)) for m in (BUILDER, INSPECTOR, RUNNER)]
        name = _name(RUNNER, kind, with_library=True)
        runner, library = found[-1], self._reports.get(name)
        foreign = self._reports.get(_name(FOREIGN, kind, with_library=True))
        if runner is not None and library is None:
            without = self._why_no_bubblewrap(RUNNER, kind, with_library=True)
            library = dataclasses.replace(
                runner,
                process=name,
                mechanisms=tuple(m for m in runner.mechanisms if m != "bubblewrap"),
                rules=tuple(r for r in runner.rules if r.startswith(_SAME_RULES)),
                missing=(_NOT_STARTED, *_missing(without)),
            )
        return tuple(report for report in (*found, library, foreign) if report is not None)

    def warm_up_library(self) -> str:
        """Start the fork server with torch unless it runs, wait for it; returns the version.

        Raises:
            ProcessLostError: it does not start; torch may be missing.
        """
        return self._library_forks.warm_up().torch_version

    def close(self) -> None:
        """End the fork servers, and look after no process any more."""
        self._forks.close()
        self._library_forks.close()
        self._watch.close()

    def _start_in_bubblewrap(
        self, module: str, kind: str, scratch: str, threads: int
    ) -> ChildProcess:
        command = ProcessCommand(
            module=module,
            environment=self._environment(scratch, threads),
            wrapping=self._wrapping(module, kind, scratch, threads),
            accepts_descriptors=False,
        )
        return self._launcher.start(command)

    def _start_fork_server(self) -> ChildProcess:
        # Its forks get a scratch folder each; it writes nothing itself. OpenBLAS would start
        # threads when numpy is imported, and they do not survive a fork.
        environment = (*self._environment("/nonexistent"), ("OPENBLAS_NUM_THREADS", "1"))
        command = ProcessCommand(
            module=FORK_SERVER,
            environment=environment,
            wrapping=None,
            accepts_descriptors=False,
        )
        return self._launcher.start(command)

    def _why_no_bubblewrap(self, module: str, kind: str, *, with_library: bool) -> str:
        if with_library:
            return "not around a forked runner, whose parent is not the supervisor"
        if kind == "cuda" and module == RUNNER:
            return "not around a CUDA runner: memory is not shared across namespaces"
        if not self._settings.use_bubblewrap:
            return "switched off"
        return bubblewrap.probe(self._wrapping(module, kind, bubblewrap.SCRATCH), sys.executable)

    def _wrapping(
        self, module: str, kind: str, scratch: str, threads: int = 0
    ) -> bubblewrap.Mounts:
        opens_device = kind == "sycl" and module != INSPECTOR
        return bubblewrap.Mounts(
            readable=self._readable,
            devices=device_nodes(kind) if opens_device else (),
            environment=self._environment(scratch, threads),
        )

    def _environment(self, scratch: str, threads: int = 0) -> tuple[tuple[str, str], ...]:
        variables = {
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            **dict(_scratch_variables(scratch)),
            "PYTHONPATH": package_root(),
            "PYTHONDONTWRITEBYTECODE": "1",
            **dict(self._device_threads(threads)),
            "CUDA_CACHE_DISABLE": "1",
            "OMP_NUM_THREADS": str(self._settings.thread_count),
            **own_variables(PASSED_ON),
        }
        return tuple(variables.items())

    def _device_threads(self, threads: int) -> tuple[tuple[str, str], ...]:
        """Return what decides how many work-groups the CPU device runs at once."""
        return (("DPCPP_CPU_NUM_CUS", str(threads or self._settings.thread_count)),)

    def _confinement(
        self, module: str, scratch: str, kind: str, node: str, architecture: str
    ) -> Confinement:
        is_builder = module == BUILDER
        # A builder for a given architecture asks no device.
        opens_none = module == INSPECTOR or (is_builder and architecture)
        opened = "" if opens_none else kind
        is_foreign = module == FOREIGN
        memory_bytes, cpu_seconds = {
            FOREIGN: (self._settings.runner_bytes, _RUNNER_CPU_SECONDS),
            BUILDER: (self._settings.builder_memory_bytes, _BUILDER_CPU_SECONDS),
            INSPECTOR: (INSPECTOR_BYTES, _INSPECTOR_CPU_SECONDS),
            RUNNER: (self._settings.runner_bytes, _RUNNER_CPU_SECONDS),
        }[module]
        return Confinement(
            readable=self._readable,
            devices=device_nodes(opened, node),
            scratch=scratch,
            makes_folders=is_builder or is_foreign or opened == "cuda",
            memory_bytes=memory_bytes,
            cpu_seconds=cpu_seconds,
            file_bytes=_FOREIGN_FILE_BYTES if is_foreign else FILE_BYTES,
            open_files=OPEN_FILES,
            scratch_bytes=_FOREIGN_SCRATCH_BYTES if is_foreign else bubblewrap.SCRATCH_BYTES,
            calls=_calls(module, opened),
        )


def _calls(module: str, opened: str) -> CallFilter:
    if module == FOREIGN:
        return CallFilter.REFUSE_LISTED_BUT_PROGRAMS
    return CallFilter.REFUSE_LISTED if opened == "cuda" else CallFilter.ALLOW_LISTED


def _configure(process: ChildProcess, configure: Configure) -> Ready:
    try:
        received = process.ask(configure, Ready, OwnFailure, timeout_seconds=_START_SECONDS)
    except ChannelError as error:
        process.wait(_END_SECONDS)
        end = process.kill()
        how = f"{end.describe()}: {end.last_words[-800:]}" if end is not None else str(error)
        raise ProcessLostError(f"a process ended before it was ready: {how}", cause=how) from error
    if isinstance(received.message, OwnFailure):
        process.kill()
        raise received.message.error()
    ready: Ready = received.message
    return ready


def _name(module: str, kind: str, *, with_library: bool = False) -> str:
    """What a process is called in reports: "sycl builder", "cuda library runner"."""
    which = "library " if with_library and module == RUNNER else ""
    return f"{kind} {which}{module.rpartition('.')[2]}"


def _missing(without: str) -> tuple[str, ...]:
    return (f"bubblewrap: {without}",) if without else ()


def _told(ready: Ready, process: str, missing: tuple[str, ...]) -> Ready:
    """What a process said, with what only its starter knows."""
    isolation = dataclasses.replace(
        ready.isolation, process=process, missing=(*missing, *ready.isolation.missing)
    )
    return dataclasses.replace(ready, isolation=isolation)


def _scratch_variables(folder: str) -> tuple[tuple[str, str], ...]:
    return (("HOME", folder), ("TMPDIR", folder))


def _compiler_variables(folder: str) -> tuple[tuple[str, str], ...]:
    """Where torch and Triton keep what they build, and that they start few compilers for it."""
    caches = ("TORCH_EXTENSIONS_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
    return (
        # Torch looks for ninja there.
        ("PATH", f"{sys.prefix}/bin:/usr/local/cuda/bin:/usr/bin:/bin"),
        ("USER", "nobody"),  # or torch asks who it is, in a file out of reach
        *((name, f"{folder}/{name.lower()}") for name in caches),
        ("TORCHINDUCTOR_COMPILE_THREADS", "1"),
        ("TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS", "0"),
        ("MAX_JOBS", "2"),
    )
