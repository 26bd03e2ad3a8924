"""Child processes of the supervisor: start, talk, kill, see how they ended.

Their ready pools are in `spare_pool.py` and `build_pools.py`.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import IO, Final, Protocol

from evaluator_svc.processes.call_stop import LOOK_SECONDS
from evaluator_svc.processes.channel import (
    FROM_LOCKED,
    FROM_OURS,
    Channel,
    ChannelTimeoutError,
)
from evaluator_svc.processes.conversation import Conversation, ReceivedMessage
from evaluator_svc.processes.time_limit import answers_in_time
from evaluator_svc.sandbox import bubblewrap

_REAP_SECONDS: Final = 5.0
"""A killed process is gone in milliseconds; a driver may hold it in a system call a little."""
_STDERR_TAIL_BYTES: Final = 4096
_SHELL_SIGNAL_BASE: Final = 128
"""bubblewrap reports its child's signal as exit code 128 + signal, as a shell does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessCommand:
    """The program of a process to start."""

    module: str
    """Run as `python -m`; it gets the number of its channel's descriptor."""
    environment: tuple[tuple[str, str], ...]
    """All of the environment."""
    wrapping: bubblewrap.Mounts | None
    """None: no bubblewrap."""
    accepts_descriptors: bool
    """Whether the supervisor takes descriptors from it, and large frames: it meets no candidate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessEnd:
    """How a process ended."""

    exit_code: int | None
    """None when a signal ended it."""
    signal: int | None
    peak_memory_bytes: int
    """Largest resident set."""
    last_words: str
    """Tail of its stderr."""
    reason: str = ""
    """Why we ended it; empty when we did not, or for no fault of its own."""

    def describe(self) -> str:
        """Return the end in words."""
        if self.reason:
            return f"it was ended: {self.reason}"
        if self.signal is None:
            return f"it ended with exit code {self.exit_code}"
        try:
            name = signal.Signals(self.signal).name
        except ValueError:
            name = f"signal {self.signal}"
        return f"it was ended by {name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RawEnd:
    """How a process ended, in the system's terms."""

    wait_status: int
    """As `wait` gives it."""
    peak_memory_bytes: int


class ProcessHandle(Protocol):
    """The system's hold on a child, whoever its parent is."""

    @property
    def process_id(self) -> int:
        """Id of the process."""
        ...

    def poll(self) -> RawEnd | None:
        """Return how it ended, or None while it runs; not called again after its end."""
        ...

    def kill(self) -> None:
        """End it and all it started, at once."""
        ...


class OwnChild:
    """A child of this very process.

    Args:
        process: As started, leader of its own process group.
    """

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process

    @property
    def process_id(self) -> int:
        """Id of the process, or of the bubblewrap around it."""
        return self._process.pid

    def poll(self) -> RawEnd | None:
        """Return how it ended, or None while it runs."""
        # wait4 and not Popen.wait: only it tells the peak memory of this very child.
        try:
            pid, status, usage = os.wait4(self._process.pid, os.WNOHANG)
        except ChildProcessError:
            return None
        if pid == 0:
            return None
        self._process.returncode = os.waitstatus_to_exitcode(status)
        return RawEnd(wait_status=status, peak_memory_bytes=usage.ru_maxrss * 1024)

    def kill(self) -> None:
        """End its process group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)


class ChildProcess:
    """A running child and the conversation with it.

    Args:
        process: The system's hold on it.
        conversation: With the child.
        stderr: File that the child's stdout and stderr go to.
    """

    def __init__(
        self, process: ProcessHandle, conversation: Conversation, stderr: IO[bytes]
    ) -> None:
        self._process = process
        self._stderr = stderr
        self._end: ProcessEnd | None = None
        self._reason = ""
        self.conversation = conversation
        self.scratch: tempfile.TemporaryDirectory[str] | None = None
        """Folder on the host that goes with the process."""

    @property
    def process_id(self) -> int:
        """Id of the process, or of the bubblewrap around it."""
        return self._process.process_id

    @property
    def is_running(self) -> bool:
        """True until it was told to end or its end has been seen."""
        return not self._reason and self._end is None and self._reap() is None

    def ask(
        self,
        message: object,
        *expected: type,
        timeout_seconds: float,
        blobs: tuple[bytes, ...] = (),
        descriptors: tuple[int, ...] = (),
        look: Callable[[], None] = lambda: None,
    ) -> ReceivedMessage:
        """Send `message` and return the answer; raises `ChannelError`s.

        The limit does not count what the process waited for a core. `look` is called several times
        a second meanwhile; what it raises gives the answer up, and with it the process.
        """

        def answers(seconds: float) -> bool:
            end_s = time.monotonic() + seconds
            while True:
                look()
                left_s = end_s - time.monotonic()
                if self.conversation.has_answer(min(max(left_s, 0.0), LOOK_SECONDS)):
                    return True
                if left_s <= LOOK_SECONDS:
                    return False

        self.conversation.send(
            message, blobs=blobs, descriptors=descriptors, timeout_seconds=timeout_seconds
        )
        if not answers_in_time(answers, self.process_id, timeout_seconds):
            raise ChannelTimeoutError("no answer in time")
        return self.conversation.receive(*expected, timeout_seconds=timeout_seconds)

    def wait(self, timeout_seconds: float) -> ProcessEnd | None:
        """Return how it ended, or None when it still runs after that time."""
        deadline = time.monotonic() + timeout_seconds
        while self._end is None and self._reap() is None and time.monotonic() < deadline:
            time.sleep(0.002)
        return self._end

    def end(self, reason: str) -> None:
        """End it for what it did; whoever talks with it learns why."""
        if self.is_running:
            self._reason = reason
            self._process.kill()

    def kill(self) -> ProcessEnd | None:
        """End it and all it started, at once; return how it ended."""
        if self.is_running:
            self._process.kill()
        end = self.wait(_REAP_SECONDS)
        self.conversation.close()
        self._stderr.close()
        if self.scratch is not None:
            self.scratch.cleanup()
        return end

    def _reap(self) -> ProcessEnd | None:
        ended = self._process.poll()
        if ended is None:
            return self._end  # another thread may have seen it a moment ago
        code = os.waitstatus_to_exitcode(ended.wait_status)
        number = -code if code < 0 else None
        if code > _SHELL_SIGNAL_BASE:
            number = code - _SHELL_SIGNAL_BASE
        self._end = ProcessEnd(
            exit_code=code if number is None else None,
            signal=number,
            peak_memory_bytes=ended.peak_memory_bytes,
            last_words=self.last_words(),
            reason=self._reason,
        )
        return self._end

    def last_words(self) -> str:
        """Return the tail of its stderr so far."""
        try:
            size = os.fstat(self._stderr.fileno()).st_size
            data = os.pread(
                self._stderr.fileno(), _STDERR_TAIL_BYTES, max(0, size - _STDERR_TAIL_BYTES)
            )
        except (OSError, ValueError):
            return ""
        return data.decode(errors="replace")


class ProcessLauncher:
    """Starts children from one thread that lives as long as the launcher.

    Children die with the thread that started them (`PR_SET_PDEATHSIG` means the thread), so a
    killed service leaves nothing behind; a short-lived thread would kill its children by ending.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="launcher")

    def start(self, command: ProcessCommand) -> ChildProcess:
        """Start `command`.

        Raises:
            MechanismUnavailableError: bubblewrap is wanted and missing.
            OSError: the system refuses a process.
        """
        return self._thread.submit(_start, command).result()

    def close(self) -> None:
        """End the thread, and with it whatever still runs."""
        self._thread.shutdown()


def _start(command: ProcessCommand) -> ChildProcess:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    stderr = tempfile.TemporaryFile()  # noqa: SIM115  closed with the process
    try:
        line: tuple[str, ...] = (
            sys.executable, "-P", "-s", "-m", command.module, str(theirs.fileno()),
        )  # fmt: skip
        if command.wrapping is not None:
            line = bubblewrap.command(command.wrapping, line)
        process = subprocess.Popen(
            line,
            env=dict(command.environment),
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            stdout=stderr,
            stderr=stderr,
            start_new_session=True,
            cwd="/",
        )
    except BaseException:
        ours.close()
        stderr.close()
        raise
    finally:
        theirs.close()
    limits = FROM_OURS if command.accepts_descriptors else FROM_LOCKED
    channel = Channel(ours, accepts_descriptors=command.accepts_descriptors, limits=limits)
    return ChildProcess(OwnChild(process), Conversation(channel), stderr)
