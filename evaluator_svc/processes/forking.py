"""Messages between supervisor and fork server.

What the forked processes hear is in `evaluator_svc.messages.locked`.
"""

from dataclasses import dataclass
from typing import Final

BUILDER: Final = "evaluator_svc.builder"
INSPECTOR: Final = "evaluator_svc.inspector"
RUNNER: Final = "evaluator_svc.runner"
FOREIGN: Final = "evaluator_svc.foreign"
JUDGE: Final = "evaluator_svc.judge"
EXPORTED_FORM: Final = "evaluator_svc.exported_form"
"""The modules that a fork may run; a process that is not forked runs them as a program."""
FORK_SERVER: Final = "evaluator_svc.fork_server"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkServerStart:
    """Asks the server to import the modules of its forks."""

    modules: tuple[str, ...]
    """Modules that the forks may run."""
    with_library: bool = False
    """Whether to import torch as well, for runners that make library calls."""
    with_compiler: bool = False
    """Whether to import all of torch.compile as well, for judges that time it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkServerReady:
    """All is imported; forks take milliseconds from now on."""

    torch_version: str
    """"" without torch."""
    thread_count: int
    """Threads of the server itself; more than one does not survive a fork."""
    open_devices: tuple[str, ...]
    """Device nodes that it has open; a driver that has started does not survive a fork."""

    @property
    def can_fork(self) -> bool:
        """Whether its forks are as good as fresh processes."""
        return self.thread_count == 1 and not self.open_devices


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkRequest:
    """Fork a process; its channel's and its stderr's descriptors travel beside it."""

    module: str
    """The module that it runs, such as "evaluator_svc.runner"."""
    environment: tuple[tuple[str, str], ...]
    """Changes of the server's own environment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkReply:
    """Answer to `ForkRequest`."""

    process_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PollRequest:
    """Say whether a forked process still runs.

    Only its parent can tell how it ended, and only before it asks is the id surely its own: so
    the server kills it as well, and forgets it once its end was told.
    """

    process_id: int
    kill: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PollReply:
    """Answer to `PollRequest`."""

    has_ended: bool
    wait_status: int = 0
    """As `wait` gives it."""
    peak_memory_bytes: int = 0
