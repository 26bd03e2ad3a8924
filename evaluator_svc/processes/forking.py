"""Messages between supervisor and fork server.

What the forked processes hear is in `evaluator_svc.messages.locked`.
"""

from dataclasses import dataclass
from typing import Final

BUILDER: Final = "evaluator_svc.builder"
INSPECTOR: Final = "evaluator_svc.inspector"
RUNNER: Final = "evaluator_svc.runner"
FOREIGN: Final = "evaluator_svc.foreign"
"""What a fork becomes: the module that is run where it is started as a program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkServerStart:
    """Import what the forks will need."""

    with_library: bool
    """Whether that is torch as well, for runners that make library calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkServerReady:
    """All is imported; forks take milliseconds from now on."""

    torch_version: str
    """"" without torch."""
    thread_count: int
    """Threads of the server itself; more than one does not survive a fork."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkRequest:
    """Fork a process; its channel's and its stderr's descriptors travel beside it."""

    module: str
    """What it becomes, such as "evaluator_svc.runner"."""
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
