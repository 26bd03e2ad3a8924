"""Probe of the sandbox: real locked processes of every kind try what they must not be able to do.

Every attempt is really made (see `evaluator_svc.sandbox.attempts`), by a process that was started
as those for candidates are, while a second runner lives beside it.
"""

import os
from collections.abc import Callable, Iterator
from typing import Final

from evaluator_svc.devices.site import DeviceSite
from evaluator_svc.probing.planted import Bait, planted
from evaluator_svc.processes.channel import ChannelError
from evaluator_svc.processes.locked_starter import FILE_BYTES, INSPECTOR_BYTES, OPEN_FILES
from evaluator_svc.processes.process import ChildProcess
from evaluator_svc.sandbox import bubblewrap
from evaluator_svc.sandbox.attempt import AttemptRequest, AttemptResult, AttemptTargets
from evaluator_svc.sandbox.attempts import ATTEMPTS
from kernel_foundry.domain.probe import Probe

_ANSWER_SECONDS: Final = 20.0


def probe_sandbox(site: DeviceSite) -> tuple[Probe, ...]:
    """Return one probe for each attempt of each kind of process that meets a candidate."""
    settings = site.settings
    kinds = {
        "builder": (site.builders.start_another, settings.builder_memory_bytes),
        "inspector": (site.inspectors.start_another, INSPECTOR_BYTES),
        "runner": (site.runners.start_another, settings.runner_bytes),
        "library_runner": (site.library_runners.start_another, settings.runner_bytes),
    }
    with planted() as found, site.runners.taken() as beside:
        return tuple(
            probe
            for kind, (start, memory_bytes) in kinds.items()
            for probe in _Lock(kind, start, memory_bytes).probes(found, beside.process_id)
        )


class _Lock:
    """The lock of one kind of process.

    Args:
        kind: "builder", "inspector", "runner" or "library_runner".
        start: Starts such a process.
        memory_bytes: What it may use.
    """

    def __init__(self, kind: str, start: Callable[[], ChildProcess], memory_bytes: int) -> None:
        self._kind = kind
        self._start = start
        self._memory_bytes = memory_bytes

    def probes(self, found: Bait, beside: int) -> Iterator[Probe]:
        """Yield what became of each attempt; a process that ends is replaced."""
        process: ChildProcess | None = None
        try:
            for name in ATTEMPTS:
                if process is None:
                    process = self._start()
                targets = self._targets(process, found, beside)
                try:
                    yield self._attempted(process, name, targets)
                except ChannelError as error:
                    end = process.kill()
                    process = None
                    how = end.describe() if end is not None else str(error)
                    yield self._probe(name, refused=False, detail=f"no answer: {how}")
        finally:
            if process is not None:
                process.kill()

    def _attempted(self, process: ChildProcess, name: str, targets: AttemptTargets) -> Probe:
        request = AttemptRequest(name=name, targets=targets)
        received = process.ask(request, AttemptResult, timeout_seconds=_ANSWER_SECONDS)
        answer: AttemptResult = received.message
        detail = "it was possible" if answer.succeeded else f"refused with {answer.error}"
        return self._probe(name, refused=not answer.succeeded, detail=detail)

    def _probe(self, name: str, *, refused: bool, detail: str) -> Probe:
        return Probe(name=f"sandbox.{self._kind}.{name}", passed=refused, detail=detail)

    def _targets(self, process: ChildProcess, found: Bait, beside: int) -> AttemptTargets:
        scratch = bubblewrap.SCRATCH if process.scratch is None else process.scratch.name
        return AttemptTargets(
            processes=(os.getpid(), found.process, beside),
            secrets=found.files,
            token=found.token,
            outside=found.outside,
            port=found.port,
            abstract_name=found.abstract_name,
            scratch=scratch,
            memory_bytes=self._memory_bytes,
            file_bytes=FILE_BYTES,
            open_files=OPEN_FILES,
        )
