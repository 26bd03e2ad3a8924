"""When a job begins: at most so many run at once, and their users take turns.

Whoever waits looks for itself: there is no process that starts jobs.
"""

import fcntl
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.sdk.jobs.job import Job, JobFolder, JobState

AT_ONCE_VARIABLE: Final = "KERNEL_FOUNDRY_JOBS_AT_ONCE"
_REMEMBERED_S: Final = 86_400.0
"""What jobs ran in this time counts towards their user's share."""


def most_at_once(environment: Mapping[str, str]) -> int | None:
    """Return how many jobs may run at the same time; None: all that are submitted.

    Raises:
        InvalidArgumentError: the variable has no count.
    """
    text = environment.get(AT_ONCE_VARIABLE, "").strip()
    if not text:
        return None
    if not text.isdecimal() or not int(text):
        raise InvalidArgumentError(
            f"{AT_ONCE_VARIABLE}={text!r}: expected a number from 1 on", field="jobs_at_once"
        )
    return int(text)


def order(jobs: Iterable[Job], now_s: float) -> list[Job]:
    """Return the jobs that wait, the next one first.

    By priority; among equals the user is next whose jobs ran least in the last day, and of one user
    the oldest.
    """
    used_s: dict[str, float] = {}
    waiting = []
    for job in jobs:
        state = job.state
        if state is JobState.WAITING:
            waiting.append(job)
        # Nobody knows how long a lost one ran.
        if job.began_unix_s is None or state is JobState.LOST:
            continue
        since_s = max(job.began_unix_s, now_s - _REMEMBERED_S)
        ran_s = (job.ended_unix_s or now_s) - since_s
        used_s[job.owner] = used_s.get(job.owner, 0.0) + max(ran_s, 0.0)
    return sorted(
        waiting, key=lambda j: (-j.priority, used_s.get(j.owner, 0.0), j.submitted_unix_s, j.id)
    )


def begin(file: Path, job: Job, most: int | None) -> Job | None:
    """Return the job as begun, if it is its turn; None: it has to wait.

    It also waits while a file in the folder cannot be read: `kfoundry jobs list` names that one.

    Args:
        file: The job's, in the folder of all.
        job: It, with its process; kept as it is until it begins.
        most: Jobs that may run at the same time; None: any number.

    Raises:
        InvalidArgumentError: the job's file cannot be written.
    """
    folder = JobFolder(file.parent)
    with _alone(file.parent):
        if most is not None:
            try:
                jobs = folder.jobs()
            except InvalidArgumentError:  # whether that one runs is not known: look again
                return None
            running = sum(other.state is JobState.RUNNING for other in jobs)
            free = max(most - running, 0)  # jobs of a larger count may run
            if job.id not in {first.id for first in order(jobs, time.time())[:free]}:
                return None
        begun = replace(job, began_unix_s=time.time())
        folder.write(begun)
        return begun


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other jobs from beginning meanwhile."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
