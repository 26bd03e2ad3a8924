"""Messages between supervisor and a locked process when the lock itself is tried.

Only the first message to a process may be such a request, and a process that got one never gets a
candidate. How things are tried is in `attempts.py`.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptTargets:
    """What was planted for a locked process to reach for, and what it should be limited to."""

    processes: tuple[int, ...]
    """Ids of processes that live: the supervisor, one with a secret environment, a runner."""
    secrets: tuple[str, ...]
    """Files with the secret in them."""
    token: str
    """The secret, which is in the supervisor's environment too."""
    outside: str
    """A file that may be made where nothing but planted files lie."""
    port: int
    """Of 127.0.0.1, where the supervisor listens."""
    abstract_name: str
    """Of a UNIX socket where the supervisor listens."""
    scratch: str
    memory_bytes: int
    file_bytes: int
    open_files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRequest:
    """Try one thing that the lock should refuse."""

    name: str
    """Of an attempt of `evaluator_svc.sandbox.attempts`."""
    targets: AttemptTargets


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptResult:
    """How it went."""

    succeeded: bool
    error: str
    """Name of the error that refused it, such as "EPERM"."""
