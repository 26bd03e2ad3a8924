"""The name by which the user called this command, for hints that can be copied."""

import shutil
import sys
from pathlib import Path


def as_called(words: str) -> str:
    """Return a full command line, such as ".venv/bin/kfoundry runs best" for "runs best"."""
    return f"{_program()} {words}"


def _program() -> str:
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return f"{sys.orig_argv[0]} -m kernel_foundry.cli"
    on_path = shutil.which(called.name)
    # The shell passes the full path of a program that it found on its path, not the typed name.
    is_on_path = on_path is not None and called.exists() and called.samefile(on_path)
    return called.name if is_on_path else str(called)
