"""Machine code as text, by the toolkit's own disassembler where it is installed."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from kernel_foundry.scratch import scratch_folder

_SECONDS: Final = 20.0
_MAX_CHARACTERS: Final = 4 << 20
_TOOLKIT: Final = "/usr/local/cuda/bin"
_COMMANDS: Final = (("nvdisasm", "-c"), ("cuobjdump", "-sass"))
"""Programs, by preference, each with what makes it print code alone."""


def disassemble(code: bytes) -> str | None:
    """Return the cubin's instructions; None when no disassembler is found, or it fails."""
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), _TOOLKIT))
    for name, option in _COMMANDS:
        program = shutil.which(name, path=path)
        if program is not None:
            return _run(program, option, code)
    return None


def _run(program: str, option: str, code: bytes) -> str | None:
    with scratch_folder("cubin") as folder:
        file = Path(folder, "kernel.cubin")
        file.write_bytes(code)
        try:
            done = subprocess.run(
                [program, option, str(file)], capture_output=True, timeout=_SECONDS, check=True
            )
        except (OSError, subprocess.SubprocessError):
            return None
    return done.stdout.decode("utf-8", errors="replace")[:_MAX_CHARACTERS]
