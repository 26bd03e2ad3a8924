"""The supervisor's side of the fork server: starts it, forks with it, sees how forks end.

The process itself is `evaluator_svc.fork_server`.
"""

import signal
import socket
import tempfile
import threading
from collections.abc import Callable
from typing import Final

from evaluator_svc.processes.channel import FROM_LOCKED, FROM_OURS, Channel, ChannelError
from evaluator_svc.processes.conversation import Conversation
from evaluator_svc.processes.forking import (
    ForkReply,
    ForkRequest,
    ForkServerReady,
    ForkServerStart,
    PollReply,
    PollRequest,
)
from evaluator_svc.processes.process import ChildProcess, RawEnd
from kernel_foundry.errors import ProcessLostError

_START_SECONDS: Final = 120.0
"""Longest start of the server, which imports torch from a cold disk."""
_ANSWER_SECONDS: Final = 10.0
"""Longest answer of the server: a fork takes milliseconds, everything else less."""


class ForkClient:
    """Forks processes. The server starts at the first fork, and again if it is lost.

    Args:
        start: Starts the server's process.
        imports: Modules that the server imports before it forks.
        meets_candidates: Whether forks meet candidates: then they may send no descriptors, and only
            small frames.
    """

    def __init__(
        self,
        start: Callable[[], ChildProcess],
        imports: ForkServerStart,
        *,
        meets_candidates: bool = True,
    ) -> None:
        self._start = start
        self._imports = imports
        self._meets_candidates = meets_candidates
        self._process: ChildProcess | None = None
        self._ready: ForkServerReady | None = None
        self._lock = threading.Lock()
        self._is_closed = False

    def warm_up(self) -> ForkServerReady:
        """Start the server unless it runs; returns when it can fork.

        Raises:
            ProcessLostError: it does not start.
        """
        with self._lock:
            self._running()
            assert self._ready is not None, "a running server is ready"
            return self._ready

    def fork(self, module: str, environment: tuple[tuple[str, str], ...]) -> ChildProcess:
        """Return a new process, not yet configured.

        Args:
            module: What it becomes, such as "evaluator_svc.runner".
            environment: Changes of the server's environment.

        Raises:
            ProcessLostError: the server is lost.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        stderr = tempfile.TemporaryFile()  # noqa: SIM115  closed with the process
        try:
            with self._lock, theirs:
                server = self._running()
                received = server.ask(
                    ForkRequest(module=module, environment=environment),
                    ForkReply,
                    timeout_seconds=_ANSWER_SECONDS,
                    descriptors=(theirs.fileno(), stderr.fileno()),
                )
        except ChannelError as error:
            ours.close()
            stderr.close()
            raise ProcessLostError(f"the fork server is lost: {error}") from error
        except BaseException:
            ours.close()
            stderr.close()
            raise
        handle = _ForkedProcess(self, server, received.message.process_id)
        limits = FROM_LOCKED if self._meets_candidates else FROM_OURS
        channel = Channel(ours, accepts_descriptors=not self._meets_candidates, limits=limits)
        return ChildProcess(handle, Conversation(channel), stderr)

    def poll(self, server: ChildProcess, request: PollRequest) -> PollReply:
        """Ask `server` about one of its children, which end with it."""
        with self._lock:
            try:
                received = server.ask(request, PollReply, timeout_seconds=_ANSWER_SECONDS)
            except ChannelError:
                server.kill()
                return PollReply(has_ended=True, wait_status=signal.SIGKILL)
        polled: PollReply = received.message
        return polled

    def close(self) -> None:
        """End the server, and with it its forks, also while it starts; no other one starts."""
        self._is_closed = True
        process = self._process
        if process is not None:
            process.end("it is no longer needed")  # whoever waits for its start holds the lock
        with self._lock:
            if self._process is not None:
                self._process.kill()
                self._process = None

    def _running(self) -> ChildProcess:
        if self._process is not None:
            if self._process.is_running:
                return self._process
            self._process.kill()
        if self._is_closed:
            raise ProcessLostError("the fork server is closed", cause="closed")
        process = self._process = self._start()
        if self._is_closed:
            process.end("it is no longer needed")
        try:
            received = process.ask(self._imports, ForkServerReady, timeout_seconds=_START_SECONDS)
        except ChannelError as error:
            process.wait(1.0)
            end = process.kill()
            self._process = None
            how = f"{end.describe()}: {end.last_words[-800:]}" if end is not None else str(error)
            raise ProcessLostError(f"the fork server did not start: {how}", cause=how) from error
        self._ready = received.message
        return process


class _ForkedProcess:
    """The system's hold on a process whose parent is the fork server."""

    def __init__(self, servers: ForkClient, server: ChildProcess, process_id: int) -> None:
        self._servers = servers
        self._server = server
        self._process_id = process_id
        self._end: RawEnd | None = None

    @property
    def process_id(self) -> int:
        """Id of the process."""
        return self._process_id

    def poll(self) -> RawEnd | None:
        """Return how it ended, or None while it runs."""
        return self._ask(kill=False)

    def kill(self) -> None:
        """End its process group."""
        self._ask(kill=True)

    def _ask(self, *, kill: bool) -> RawEnd | None:
        if self._end is None:
            request = PollRequest(process_id=self._process_id, kill=kill)
            polled = self._servers.poll(self._server, request)
            if polled.has_ended:
                self._end = RawEnd(
                    wait_status=polled.wait_status, peak_memory_bytes=polled.peak_memory_bytes
                )
        return self._end
