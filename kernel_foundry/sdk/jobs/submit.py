"""Starts jobs and cancels them."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from kernel_foundry.errors import InvalidArgumentError, ProcessLostError
from kernel_foundry.process_identity import is_visible
from kernel_foundry.sdk.jobs.job import START_S, Job, JobFolder, JobState, new_job
from kernel_foundry.sdk.jobs.queue import most_at_once
from kernel_foundry.sdk.jobs.supervisor import GRACE_S

_LOOK_S: Final = 0.05


def submit(folder: JobFolder, words: Sequence[str], *, priority: int = 0) -> Job:
    """Start a command of `kfoundry` as a job in the current folder, and return at once.

    It has this process's environment, which is not kept. Where jobs have to wait for each other
    (`queue.py`) it begins when it is its turn.

    Raises:
        InvalidArgumentError: what is kept of it cannot be written, or the environment has no count
            of jobs where it should.
        ProcessLostError: its process did not start.
    """
    most_at_once(os.environ)
    job = new_job(words, Path.cwd(), priority=priority)
    folder.write(job)
    log = folder.log(job.id)
    try:
        code, why = _exit_code(folder.file(job.id), log), f"{log} says why"
    except OSError as error:
        code, why = 1, str(error)
    if code != 0:
        folder.write(replace(job, ended_unix_s=time.time(), exit_code=code))
        raise ProcessLostError(f"the process of job {job.id} did not start; {why}")
    return job


def cancel(folder: JobFolder, job_id: str) -> Job:
    """Stop a job and what it has under way; return it once it has ended.

    A run that it made is kept, and can be resumed.

    Raises:
        InvalidArgumentError: there is no such job, it has ended, or its process is not to be seen
            from here: another host, or another container.
        PermissionDeniedError: it is another user's.
    """
    folder.find(job_id).check_owner()
    job = _begun(folder, job_id)
    if job.process is None or job.has_ended:
        raise InvalidArgumentError(f"job {job.id} does not go on: {job.state}", field="job")
    if not is_visible(job.process):
        raise InvalidArgumentError(
            f"job {job.id} runs on {job.process.host}: cancel it there", field="job"
        )
    with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
        os.kill(job.process.process_id, signal.SIGTERM)
    patience_s = time.monotonic() + GRACE_S + START_S
    while not job.has_ended and time.monotonic() < patience_s:
        time.sleep(_LOOK_S)
        job = folder.find(job_id)
    return job


def _begun(folder: JobFolder, job_id: str) -> Job:
    """The job, once its process is known or will not be."""
    while (job := folder.find(job_id)).state is JobState.STARTING:
        time.sleep(_LOOK_S)
    return job


def _exit_code(file: Path, log: Path) -> int:
    """Of the process that starts a job's own and ends at once."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        started = subprocess.run(
            [sys.executable, "-m", "kernel_foundry.sdk.jobs.supervisor", file],
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=descriptor,
            check=False,
        )
    finally:
        os.close(descriptor)
    return started.returncode
