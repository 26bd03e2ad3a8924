"""The process that judges are forked from: it has imported what they need, which takes seconds.

It meets no task, draws no seed, opens no device and has one thread. Evaluators of one process share
it if their judges have the same libraries in the same environment; it ends with the last of them.
"""

import threading
from typing import Final

from evaluator_svc.processes.fork_client import ForkClient
from evaluator_svc.processes.forking import FORK_SERVER, JUDGE, ForkServerStart
from evaluator_svc.processes.process import ChildProcess, ProcessCommand, ProcessLauncher

_Environment = tuple[tuple[str, str], ...]


class JudgeTemplate:
    """Starts judges; the process starts with the first one, and again when it is lost.

    Made by `SharedTemplate`.

    Args:
        environment: What libraries read of the environment when they are loaded.
        with_compiler: Whether judges will time torch.compile.
    """

    def __init__(self, environment: _Environment, *, with_compiler: bool) -> None:
        self._environment = environment
        self._launcher = ProcessLauncher()
        self._forks = ForkClient(
            self._start_server,
            ForkServerStart(modules=(JUDGE,), with_compiler=with_compiler),
            meets_candidates=False,
        )

    def warm_up(self) -> None:
        """Start the process unless it runs; returns when it can fork.

        Raises:
            ProcessLostError: it does not start; torch may be missing.
        """
        self._forks.warm_up()

    def start(self, environment: _Environment) -> ChildProcess:
        """Return a new judge, not yet configured; it has `environment` besides the template's.

        Raises:
            ProcessLostError: the template does not start.
        """
        if self._forks.warm_up().can_fork:
            return self._forks.fork(JUDGE, environment)
        # A library that opens a device or starts a thread when it is imported.
        return self._start_program(JUDGE, environment)

    def end(self) -> None:
        """End the process, and with it every judge."""
        self._forks.close()
        self._launcher.close()

    def _start_server(self) -> ChildProcess:
        # OpenBLAS would start threads when numpy is imported; a judge sets their number itself.
        return self._start_program(FORK_SERVER, (("OPENBLAS_NUM_THREADS", "1"),))

    def _start_program(self, module: str, environment: _Environment) -> ChildProcess:
        command = ProcessCommand(
            module=module,
            environment=(*self._environment, *environment),
            wrapping=None,
            accepts_descriptors=True,
        )
        return self._launcher.start(command)


class _Shared:
    """A template and how many hold it."""

    def __init__(self, template: JudgeTemplate) -> None:
        self.template = template
        self.holder_count = 0


_LOCK: Final = threading.Lock()
_TEMPLATES: Final[dict[tuple[_Environment, bool], _Shared]] = {}


class SharedTemplate:
    """A hold on the template of an environment; see `JudgeTemplate`."""

    def __init__(self, environment: _Environment, *, with_compiler: bool) -> None:
        self._key = (environment, with_compiler)
        self._is_held = True
        with _LOCK:
            if self._key not in _TEMPLATES:
                template = JudgeTemplate(environment, with_compiler=with_compiler)
                _TEMPLATES[self._key] = _Shared(template)
            shared = _TEMPLATES[self._key]
            shared.holder_count += 1
        self.template: Final = shared.template

    def close(self) -> None:
        """Let go; the last one ends the process."""
        with _LOCK:
            if not self._is_held:
                return
            self._is_held = False
            shared = _TEMPLATES[self._key]
            shared.holder_count -= 1
            if shared.holder_count:
                return
            del _TEMPLATES[self._key]
        shared.template.end()
