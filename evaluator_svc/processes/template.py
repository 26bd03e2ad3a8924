"""A process that others of one kind are forked from: its imports of torch take seconds.

It meets no task, draws no seed, opens no device and has one thread. Whoever in one process needs
the same imports in the same environment shares it; it ends with the last of them.
"""

import threading
from dataclasses import dataclass
from typing import Final

from evaluator_svc.processes.fork_client import ForkClient
from evaluator_svc.processes.forking import FORK_SERVER, ForkServerStart
from evaluator_svc.processes.process import ChildProcess, ProcessCommand, ProcessLauncher

Environment = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateKind:
    """The purpose of a template; templates of one kind are alike."""

    module: str
    """The module that its forks run; it is run as a program if it cannot fork."""
    environment: Environment
    """Variables that libraries read when they are loaded."""
    with_compiler: bool = False
    """Whether all of torch.compile is imported as well."""
    meets_candidates: bool
    """Whether forks run code of candidates: they may send no descriptors, and only small frames."""


class Template:
    """Starts processes; its own starts with the first one, and again when it is lost.

    Made by `SharedTemplate`.
    """

    def __init__(self, kind: TemplateKind) -> None:
        self._kind = kind
        self._launcher = ProcessLauncher()
        self._forks = ForkClient(
            self._start_server,
            ForkServerStart(modules=(kind.module,), with_compiler=kind.with_compiler),
            meets_candidates=kind.meets_candidates,
        )

    def warm_up(self) -> None:
        """Start the process unless it runs; returns when it can fork.

        Raises:
            ProcessLostError: it does not start; torch may be missing.
        """
        self._forks.warm_up()

    def start(self, environment: Environment) -> ChildProcess:
        """Return a new process, not yet configured; it has `environment` besides the template's.

        Raises:
            ProcessLostError: the template does not start.
        """
        if self._forks.warm_up().can_fork:
            return self._forks.fork(self._kind.module, environment)
        # A library that opens a device or starts a thread when it is imported.
        return self._start_program(self._kind.module, environment)

    def end(self) -> None:
        """End the process, and with it all that was forked from it."""
        self._forks.close()
        self._launcher.close()

    def _start_server(self) -> ChildProcess:
        # OpenBLAS would start threads when numpy is imported, and they do not survive a fork.
        return self._start_program(FORK_SERVER, (("OPENBLAS_NUM_THREADS", "1"),))

    def _start_program(self, module: str, environment: Environment) -> ChildProcess:
        command = ProcessCommand(
            module=module,
            environment=(*self._kind.environment, *environment),
            wrapping=None,
            accepts_descriptors=not self._kind.meets_candidates,
        )
        return self._launcher.start(command)


class _Shared:
    """A template and how many hold it."""

    def __init__(self, template: Template) -> None:
        self.template = template
        self.holder_count = 0


_LOCK: Final = threading.Lock()
_TEMPLATES: Final[dict[TemplateKind, _Shared]] = {}


class SharedTemplate:
    """A hold on the template of a kind; see `Template`."""

    def __init__(self, kind: TemplateKind) -> None:
        self._kind = kind
        self._is_held = True
        with _LOCK:
            if kind not in _TEMPLATES:
                _TEMPLATES[kind] = _Shared(Template(kind))
            shared = _TEMPLATES[kind]
            shared.holder_count += 1
        self.template: Final = shared.template

    def close(self) -> None:
        """Let go; the last one ends the process."""
        with _LOCK:
            if not self._is_held:
                return
            self._is_held = False
            shared = _TEMPLATES[self._kind]
            shared.holder_count -= 1
            if shared.holder_count:
                return
            del _TEMPLATES[self._kind]
        shared.template.end()
