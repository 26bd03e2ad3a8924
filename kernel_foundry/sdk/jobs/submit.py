"""Starts jobs and cancels them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kernel_foundry.errors import InvalidArgumentError, ProcessLostError
from kernel_foundry.sdk.jobs.job import Job, JobFolder, JobState, new_job
from kernel_foundry.sdk.jobs.supervisor import GRACE_S

_LOOK_S: Final = 0.05
_START_S: Final = 60.0


def submit(folder: JobFolder, words: Sequence[str]) -> Job:
    """Start a command of `kfoundry` as a job in the current folder, and return at once.

    It has this process's environment, which is not kept.

    Raises:
        InvalidArgumentError: what is kept of it cannot be written.
        ProcessLostError: its process did not start.
    """
    job = new_job(words, Path.cwd())
    folder.write(job)
    descriptor = os.open(folder.log(job.id), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        started = subprocess.run(
            [sys.executable, "-m", "kernel_foundry.sdk.jobs.supervisor", folder.file(job.id)],
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=descriptor,
            check=False,
        )
    finally:
        os.close(descriptor)
    if started.returncode != 0:
        log = folder.log(job.id)
        raise ProcessLostError(f"the process of job {job.id} did not start; {log} says why")
    return job


def cancel(folder: JobFolder, job_id: str) -> Job:
    """Stop a job and what it has under way; return it once it has ended.

    A run that it made is kept, and can be resumed.

    Raises:
        InvalidArgumentError: there is no such job, or it has ended.
    """
    job = _begun(folder, job_id)
    if job.process is None or job.has_ended:
        raise InvalidArgumentError(f"job {job.id} does not go on: {job.state}", field="job")
    os.kill(job.process.process_id, signal.SIGTERM)
    patience_s = time.monotonic() + GRACE_S + _START_S
    while not job.has_ended and time.monotonic() < patience_s:
        time.sleep(_LOOK_S)
        job = folder.find(job_id)
    return job


def _begun(folder: JobFolder, job_id: str) -> Job:
    """The job, once its process is known or will not be."""
    patience_s = time.monotonic() + _START_S
    while True:
        job = folder.find(job_id)
        if job.state is not JobState.STARTING or time.monotonic() > patience_s:
            return job
        time.sleep(_LOOK_S)
