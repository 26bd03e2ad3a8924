"""A job: one command of ours in its own process, with its record and output in a folder."""

import getpass
import json
import os
import secrets
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from kernel_foundry.bounded_json import parse_json
from kernel_foundry.domain.archive import LeaseHolder
from kernel_foundry.domain.plain import from_plain
from kernel_foundry.errors import InvalidArgumentError, PermissionDeniedError
from kernel_foundry.process_identity import is_gone_from_host
from kernel_foundry.text_file import read_text_file
from kernel_foundry.whole_file import replace_file, writing

_LONGEST_FILE: Final = 1 << 20
_SUFFIX: Final = ".json"

START_S: Final = 60.0
"""In which a job's process begins, or is lost."""


class JobState(StrEnum):
    """The state of a job."""

    STARTING = "starting"
    WAITING = "waiting"
    """For others to end, see `queue.py`."""
    RUNNING = "running"
    DONE = "done"
    """Its command ended with exit code 0."""
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"
    """Its process is gone and has not said how it ended, as after a restart; or it never began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The stored record of a job."""

    id: str
    words: tuple[str, ...]
    """The command and its arguments, such as ("optimize", "my_op.py")."""
    folder: str
    """Where it was given."""
    submitted_unix_s: float
    process: LeaseHolder | None = None
    """The process that waits for the command; None: it has not begun."""
    owner: str = ""
    """User who submitted it."""
    priority: int = 0
    """Higher ones begin first."""
    began_unix_s: float | None = None
    """When its command did; None: it waits."""
    ended_unix_s: float | None = None
    exit_code: int | None = None
    is_cancelled: bool = False

    @property
    def state(self) -> JobState:
        """Where it stands now."""
        if self.ended_unix_s is not None:
            if self.is_cancelled:
                return JobState.CANCELLED
            return JobState.DONE if self.exit_code == 0 else JobState.FAILED
        if self.process is None:
            may_begin = time.time() - self.submitted_unix_s < START_S
            return JobState.STARTING if may_begin else JobState.LOST
        if is_gone_from_host(self.process):
            return JobState.LOST
        return JobState.WAITING if self.began_unix_s is None else JobState.RUNNING

    def check_owner(self) -> None:
        """Refuse to change a job of another user of this folder.

        Raises:
            PermissionDeniedError: it is one's.
        """
        if self.owner not in ("", user_name()):
            raise PermissionDeniedError(
                f"job {self.id} belongs to {self.owner}, who may cancel and delete it; you are"
                f" {user_name()} (KERNEL_FOUNDRY_USER names another)",
                owner=self.owner,
            )

    @property
    def has_ended(self) -> bool:
        """Return whether all of its processes have ended."""
        return self.state not in (JobState.STARTING, JobState.WAITING, JobState.RUNNING)


def user_name() -> str:
    """Return whose jobs are submitted here: as `KERNEL_FOUNDRY_USER` says, or who is logged in."""
    return os.environ.get("KERNEL_FOUNDRY_USER", "").strip() or getpass.getuser()


def new_job(words: Sequence[str], folder: Path, *, priority: int = 0) -> Job:
    """Return a job of this user that was not submitted yet."""
    now_s = time.time()
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(now_s))
    return Job(
        id=f"{stamp}-{secrets.token_hex(2)}",
        words=tuple(words),
        folder=str(folder),
        submitted_unix_s=now_s,
        owner=user_name(),
        priority=priority,
    )


class JobFolder:
    """The jobs of a machine, a file for each and one for what its command says.

    Args:
        path: The folder, made when the first is written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def file(self, job_id: str) -> Path:
        """Return the file of a job."""
        return self._path / f"{job_id}{_SUFFIX}"

    def log(self, job_id: str) -> Path:
        """Return the file of what its command says."""
        return self._path / f"{job_id}.log"

    def jobs(self) -> tuple[Job, ...]:
        """Return all, newest first; not those that are deleted meanwhile.

        Raises:
            InvalidArgumentError: a file there is no job's.
        """
        found = []
        for file in sorted(self._path.glob(f"*{_SUFFIX}"), reverse=True):
            try:
                found.append(read_job(file))
            except InvalidArgumentError:
                if file.exists():
                    raise
        return tuple(found)

    def find(self, job_id: str) -> Job:
        """Return a job.

        Raises:
            InvalidArgumentError: there is none of that id, or its file is none of ours.
        """
        if job_id not in self._ids():
            raise InvalidArgumentError(f"no job {job_id!r}", field="job")
        return read_job(self.file(job_id))

    def newest(self) -> Job:
        """Return the job that was submitted last.

        Raises:
            InvalidArgumentError: there is none, or its file is none of ours.
        """
        known = self._ids()
        if not known:
            raise InvalidArgumentError("no job was submitted", field="job")
        return read_job(self.file(max(known)))

    def _ids(self) -> set[str]:
        return {file.name.removesuffix(_SUFFIX) for file in self._path.glob(f"*{_SUFFIX}")}

    def write(self, job: Job) -> None:
        """Keep a job as it is now, whole or not at all.

        Raises:
            InvalidArgumentError: the folder cannot be written.
        """
        write_job(self.file(job.id), job)

    def delete(self, job: Job) -> None:
        """Remove what is kept of a job.

        Raises:
            InvalidArgumentError: it is still running.
            PermissionDeniedError: it is another user's.
        """
        job.check_owner()
        if not job.has_ended:
            raise InvalidArgumentError(
                f"job {job.id} is still running: cancel it first", field="job"
            )
        self.log(job.id).unlink(missing_ok=True)
        self.file(job.id).unlink(missing_ok=True)


def read_job(file: Path) -> Job:
    """Return the job of a file.

    Raises:
        InvalidArgumentError: it holds none, or cannot be read.
    """
    try:
        return from_plain(Job, parse_json(read_text_file(file, _LONGEST_FILE).encode()))
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"{file} is not a job file: {error}", field="job") from error


def write_job(file: Path, job: Job) -> None:
    """Write a job's file, whole or not at all.

    Raises:
        InvalidArgumentError: it cannot be written.
    """
    with writing(file, field="job"):
        file.parent.mkdir(parents=True, exist_ok=True)
        # Only its owner may read it: a command line may name what others need not know.
        replace_file(file, json.dumps(asdict(job), indent=1), mode=0o600)
