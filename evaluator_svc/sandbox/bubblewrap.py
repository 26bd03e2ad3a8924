"""bubblewrap: fresh namespaces around a process, where the host has it and lets it work.

`confinement.py` locks what runs inside from within as well.
"""

import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from typing import Final

from evaluator_svc.sandbox.mechanism import MechanismUnavailableError

_PROBE_SECONDS: Final = 60.0
"""It starts Python; what a busy machine says holds for the whole process."""
SCRATCH_BYTES: Final = 256 << 20
"""Size of the scratch folder, which is in memory."""

SCRATCH: Final = "/tmp"
"""Where the scratch folder lies inside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mounts:
    """What the wrapped process sees of the host."""

    readable: tuple[str, ...]
    """Mounted read-only at the same place."""
    devices: tuple[str, ...]
    """Device nodes beyond the basic ones."""
    environment: tuple[tuple[str, str], ...]
    """All of the environment."""


def command(wrapping: Mounts, inner: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command that runs `inner` wrapped; no network, own processes only.

    Raises:
        MechanismUnavailableError: bubblewrap is missing.
    """
    program = shutil.which("bwrap")
    if program is None:
        raise MechanismUnavailableError("no bwrap on PATH (install the package bubblewrap)")
    line = [program, "--unshare-all", "--die-with-parent", "--clearenv", "--chdir", "/"]
    # First of all mounts: what is readable may lie below it.
    line += ["--size", str(SCRATCH_BYTES), "--tmpfs", SCRATCH]
    for path in wrapping.readable:
        if path != "/proc":
            line += ["--ro-bind-try", path, path]
    line += ["--proc", "/proc", "--dev", "/dev"]
    # Mapped as shared it is memory that no limit counts, and not every kernel has Landlock.
    line += ["--ro-bind", "/dev/null", "/dev/zero"]
    for path in wrapping.devices:
        line += ["--dev-bind-try", path, path]
    # What bubblewrap makes up itself is memory, and would take files without end.
    line += ["--remount-ro", "/dev", "--remount-ro", "/"]
    for name, value in wrapping.environment:
        line += ["--setenv", name, value]
    return (*line, "--", *inner)


@cache
def probe(wrapping: Mounts, python: str) -> str:
    """Return why bubblewrap cannot be used here, or "" when a trial works."""
    try:
        line = command(wrapping, (python, "-c", "pass"))
        ended = subprocess.run(
            line,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (MechanismUnavailableError, OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if ended.returncode != 0:
        return ended.stderr.decode(errors="replace").strip()[-300:] or "a trial failed"
    return ""
