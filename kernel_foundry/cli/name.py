"""The command as its user called it, for hints that can be copied."""

import shutil
import sys
from pathlib import Path


def as_called(words: str) -> str:
    """Return a command line: "runs best" is ".venv/bin/kfoundry runs best" for who called that."""
    return f"{_program()} {words}"


def _program() -> str:
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return f"{sys.orig_argv[0]} -m kernel_foundry.cli"
    on_path = shutil.which(called.name)
    # A program that the shell found on its path gets to know where, not how it was called.
    is_on_path = on_path is not None and called.exists() and called.samefile(on_path)
    return called.name if is_on_path else str(called)
