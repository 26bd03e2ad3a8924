"""Which Kernel Foundry this is: its version, and its commit where it runs from a checkout."""

import importlib.metadata
import subprocess
from functools import cache
from pathlib import Path
from typing import Final

from evaluator_svc.sandbox.host_paths import package_root

_GIT_SECONDS: Final = 5.0


@cache
def own_version() -> str:
    """Return such as "0.1.0, commit 1a2b…", with "-dirty" behind a commit that was changed."""
    try:
        version = importlib.metadata.version("kernel-foundry")
    except importlib.metadata.PackageNotFoundError:
        version = "not installed"
    commit = _commit(Path(package_root()))
    return f"{version}, commit {commit}" if commit else version


def _commit(root: Path) -> str:
    """Return the commit of a checkout at `root` itself: a folder further up is somebody else's."""
    if not (root / ".git").exists():
        return ""
    command = ("git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40",
               "--exclude=*")  # fmt: skip
    try:
        described = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=_GIT_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return described.stdout.strip()
