"""A service in a process of its own: started, started again when it dies, ended with its parent."""

import asyncio
import contextlib
import logging
import signal
import sys
from pathlib import Path
from typing import Final

from kernel_foundry.errors import ServiceUnavailableError
from kernel_foundry.rpc.connection import CallOptions, RetryPolicy
from kernel_foundry.rpc.readiness import wait_until_serving

RESTARTS: Final = 3
"""Times that a service which died is started again; one that dies more often is broken."""

# Its imports cost five seconds of one core, which on a busy machine it shares with a dozen others.
_START_SECONDS: Final = 180.0

PATIENT: Final = CallOptions(quick_deadline_s=90.0, retry=RetryPolicy(attempts=10))
"""For callers of such a service: ten tries wait for about 50 s, and a start takes up to 20, longer
on a busy machine; a run that ends then goes on with --resume."""

_STOP_SECONDS: Final = 20.0
_LOG: Final = logging.getLogger(__name__)


class SpawnedService:
    """One of the three services as a child on a UNIX socket.

    It ends with this process, however that dies: it holds the other end of its standard input.

    Args:
        service: "evaluator", "archive" or "generator".
        folder: For its socket and its log.
        arguments: More of its command line.
    """

    def __init__(self, service: str, folder: Path, arguments: list[str]) -> None:
        self._service = service
        self._target = f"unix:{folder}/sock"  # its path has to be short
        self._log = folder / "log"
        self._arguments = arguments
        self._process: asyncio.subprocess.Process | None = None
        self._keeper: asyncio.Task[None] | None = None

    async def start(self) -> str:
        """Start it and return its address, once it serves.

        Raises:
            ServiceUnavailableError: it does not start; the message has its last words.
        """
        await self._start()
        self._keeper = asyncio.create_task(self._keep())
        return self._target

    async def close(self) -> None:
        """End it in order; hard when that takes too long."""
        if self._keeper is not None:
            self._keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeper
        process = self._process
        if process is not None and process.returncode is None:
            process.send_signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(process.wait(), timeout=_STOP_SECONDS)
            except TimeoutError:
                process.kill()
                await process.wait()

    async def _start(self) -> None:
        with self._log.open("ab") as output:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                f"{self._service}_svc",
                "--listen",
                self._target,
                "--end-with-input",
                *self._arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C reaches the loop first, which ends it in order
            )
        await self._until_serving(self._process)

    async def _keep(self) -> None:
        """Start it again when it dies, a few times."""
        for number in range(1, RESTARTS + 1):
            assert self._process is not None  # `start` has made it
            how = _end_in_words(await self._process.wait())
            _LOG.warning(
                "the %s service %s; it is started again (%d of %d)",
                self._service, how, number, RESTARTS,
            )  # fmt: skip
            try:
                await self._start()
            except ServiceUnavailableError as error:
                _LOG.error("%s", error.message)

    async def _until_serving(self, process: asyncio.subprocess.Process) -> None:
        """Wait for the service's health, or for its end, whichever comes first."""
        ended = asyncio.ensure_future(process.wait())
        serving = asyncio.ensure_future(wait_until_serving(self._target, timeout_s=_START_SECONDS))
        try:
            await asyncio.wait({ended, serving}, return_when=asyncio.FIRST_COMPLETED)
            if not ended.done() and serving.exception() is None:
                return
        finally:
            ended.cancel()
            serving.cancel()
        tail = self._log.read_text(errors="replace")[-2000:].strip()  # small, at the end
        how = "did not start"
        if process.returncode is None:
            how = f"did not answer within {_START_SECONDS:.0f} s"
            process.kill()
            await process.wait()
        raise ServiceUnavailableError(
            f"the {self._service} service {how}: {tail or 'it said nothing'}",
            service=self._service,
        )


def _end_in_words(returncode: int) -> str:
    if returncode >= 0:
        return f"ended with exit code {returncode}"
    try:
        return f"was ended by {signal.Signals(-returncode).name}"
    except ValueError:
        return f"was ended by signal {-returncode}"
