"""Targets planted for a locked process to reach for: secrets, a process, sockets, a folder.

A locked process reaches for it in `sandbox/attempts.py`.
"""

import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kernel_foundry.scratch import scratch_folder

_VARIABLE: Final = "KERNEL_FOUNDRY_PLANTED_TOKEN"
_WAIT: Final = "import sys; sys.stdin.read()"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bait:
    """Everything planted; gone with the context that planted it."""

    token: str
    """The secret: in the files, in the supervisor's environment, in the process's."""
    files: tuple[str, ...]
    """In a temporary folder, and in the home folder where that can be written."""
    process: int
    """Id of a process of the same user that does nothing."""
    port: int
    abstract_name: str
    outside: str
    """A file that does not exist, in a folder that can be written."""


@contextmanager
def planted() -> Iterator[Bait]:
    """Plant everything."""
    token = secrets.token_hex(16)
    with ExitStack() as stack:
        folder = stack.enter_context(scratch_folder("planted"))
        files = [_file(stack, Path(folder), token)]
        if os.access(Path.home(), os.W_OK):
            files.append(_file(stack, Path.home(), token))
        os.environ[_VARIABLE] = token
        stack.callback(os.environ.pop, _VARIABLE, None)
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        abstract = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        name = f"kernel-foundry-{token[:8]}"
        abstract.bind("\0" + name)
        abstract.listen()
        yield Bait(
            token=token,
            files=tuple(files),
            process=_process(stack, token),
            port=listener.getsockname()[1],
            abstract_name=name,
            outside=str(Path(folder, "made-from-inside")),
        )


def _file(stack: ExitStack, folder: Path, token: str) -> str:
    path = folder / f".kernel-foundry-planted-{token[:8]}"
    path.write_text(token, encoding="ascii")
    stack.callback(path.unlink, missing_ok=True)
    return str(path)


def _process(stack: ExitStack, token: str) -> int:
    """Start a process that ends with its input."""
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", _WAIT], stdin=subprocess.PIPE, env={_VARIABLE: token}
    )
    stack.callback(process.wait)
    assert process.stdin is not None, "it was asked for"
    stack.callback(process.stdin.close)
    return process.pid
