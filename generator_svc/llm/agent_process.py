"""A program that runs in a folder for a limited time, with its process group."""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_KEPT_BYTES: Final = 4096
"""Of what the program says: its end, where programs tell what went wrong."""

_PIECE_BYTES: Final = 64 << 10

_DRAIN_SECONDS: Final = 1.0
"""A process that left the group may hold the pipe open for ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramEnd:
    """How a program ended, and the last that it said on either stream."""

    exit_status: int | None
    """None: its time was over."""
    output: str


async def run_program(
    command: Sequence[str], *, folder: Path, environment: Mapping[str, str], seconds: float
) -> ProgramEnd:
    """Run a program; its process group never outlives this call, not even a cancelled one.

    Raises:
        OSError: it cannot be started.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=dict(environment),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None
    output = bytearray()
    reading = asyncio.ensure_future(_keep_the_end(process.stdout, output))
    status: int | None = None
    try:
        # Not `process.wait`: it also waits for the pipe, which a child may hold.
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                status = await _exit_status(process)
    finally:
        # Also after a good end: what the program has started must not outlive it.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        try:
            await asyncio.wait({reading}, timeout=_DRAIN_SECONDS)
        finally:
            reading.cancel()
            # Closes the pipe; there is no public way.
            process._transport.close()  # type: ignore[attr-defined]
    return ProgramEnd(exit_status=status, output=output.decode("utf-8", "replace"))


async def _exit_status(process: asyncio.subprocess.Process) -> int:
    while process.returncode is None:  # noqa: ASYNC110  asyncio has no event for it
        await asyncio.sleep(0.05)
    return process.returncode


async def _keep_the_end(stream: asyncio.StreamReader, output: bytearray) -> None:
    while piece := await stream.read(_PIECE_BYTES):
        output += piece
        del output[:-_KEPT_BYTES]
