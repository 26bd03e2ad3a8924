"""`python -m kernel_foundry.sdk.jobs.supervisor FILE`: runs a job's command and notes how it ended.

A process of its own session, so that it outlives the terminal. SIGTERM cancels the job: the command
is told to stop as by Ctrl-C, which keeps a run and ends what it has under way.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Final

from kernel_foundry.process_identity import new_holder
from kernel_foundry.sdk.jobs.job import read_job, write_job
from kernel_foundry.sdk.jobs.queue import begin, most_at_once

GRACE_S: Final = 60.0
"""Time for a command to stop after SIGINT; then it is killed."""
_LOOK_S: Final = 0.1
_TURN_LOOK_S: Final = 2.0
"""Between two looks at all jobs' files, whether it is this one's turn."""
_PR_SET_PDEATHSIG: Final = 1


def supervise(file: Path) -> None:
    """Run the command of a job's file to its end."""
    job = replace(read_job(file), process=new_holder())
    supervisor = os.getpid()
    cancelled_s: float | None = None
    is_told = False

    def cancel(*_signal: object) -> None:
        nonlocal cancelled_s
        cancelled_s = cancelled_s or time.monotonic()

    def end_with_supervisor() -> None:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM.value, 0, 0, 0)
        if os.getppid() != supervisor:  # it died before we asked
            os._exit(1)

    signal.signal(signal.SIGTERM, cancel)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    write_job(file, job)
    most = most_at_once(os.environ)
    while (begun := begin(file, job, most)) is None and cancelled_s is None:
        again_s = time.monotonic() + _TURN_LOOK_S
        while cancelled_s is None and time.monotonic() < again_s:
            time.sleep(_LOOK_S)
    if begun is None or cancelled_s is not None:  # it may have been cancelled as its turn came
        write_job(file, replace(job, ended_unix_s=time.time(), is_cancelled=True))
        return
    job = begun
    # Its standard output and error are ours already: the log.
    command = subprocess.Popen(
        [sys.executable, "-m", "kernel_foundry.cli", *job.words],
        cwd=job.folder,
        stdin=subprocess.DEVNULL,
        preexec_fn=end_with_supervisor,  # noqa: PLW1509  this process has one thread
    )
    while command.poll() is None:
        # Told once: a second SIGTERM would end the command while it keeps what it has.
        if cancelled_s is not None and not is_told:
            is_told = True
            command.terminate()
        if cancelled_s is not None and time.monotonic() - cancelled_s > GRACE_S:
            command.kill()
        try:
            command.wait(_LOOK_S)
        except subprocess.TimeoutExpired:
            continue
    ended = replace(
        job,
        ended_unix_s=time.time(),
        exit_code=command.returncode,
        is_cancelled=cancelled_s is not None,
    )
    write_job(file, ended)


if __name__ == "__main__":
    # Whoever submits waits for this process alone, and the job is nobody's child.
    if os.fork():
        os._exit(0)
    os.setsid()
    supervise(Path(sys.argv[1]))
