"""Finds a tool and runs it with a deadline."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evaluator_svc.processes.call_stop import LOOK_SECONDS, check_call
from kernel_foundry.domain.finding import Finding, FindingKind, Severity

_TOOLKIT_FOLDERS: Final = ("/usr/local/cuda/bin", "/opt/nvidia/nsight-compute")
_MAX_OUTPUT: Final = 8 << 20
"""Bytes of a tool's output that are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRun:
    """How a tool ended, and what it wrote to either stream."""

    output: str
    was_stopped: bool
    """Its time was over."""
    exit_status: int


def find(name: str, variable: str) -> str | None:
    """Return the path of a tool: where `variable` says, on PATH, or in the toolkit."""
    named = os.environ.get(variable, "")
    if named:
        return named if os.access(named, os.X_OK) else None
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), *_TOOLKIT_FOLDERS))
    return shutil.which(name, path=path)


def run(command: Sequence[str], environment: Mapping[str, str], *, seconds: float) -> ToolRun:
    """Run a tool, and end it and all that it started when its time is over.

    Raises:
        OSError: it cannot be started.
        CallStoppedError: nobody waits for it any more; it is ended.
    """
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            start_new_session=True,
        )
        try:
            was_stopped = not _ends_in_time(process, seconds)
        finally:
            # Also after a good end: what the tool has started must not outlive it.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(0)
        text = output.read(_MAX_OUTPUT).decode("utf-8", errors="replace")
    return ToolRun(output=text, was_stopped=was_stopped, exit_status=process.returncode)


def _ends_in_time(process: "subprocess.Popen[bytes]", seconds: float) -> bool:
    end_s = time.monotonic() + seconds
    while (left_s := end_s - time.monotonic()) > 0:
        check_call()
        with suppress(subprocess.TimeoutExpired):
            process.wait(min(left_s, LOOK_SECONDS))
            return True
    return False


def note(message: str, hint: str = "") -> Finding:
    """Return the finding of something about a tool itself."""
    return Finding(kind=FindingKind.TOOL, severity=Severity.INFO, message=message, hint=hint)


def absent(name: str, variable: str) -> Finding:
    """Return the finding of a tool that is not there."""
    named = os.environ.get(variable, "")
    if named:
        return note(f"{name} was not used: {variable} names {Path(named).name}, no program")
    return note(
        f"{name} was not used: it is not installed", f"it comes with CUDA; {variable} names another"
    )
