"""Services as processes: they come up, answer, survive SIGKILL's aftermath, and stop on SIGTERM."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kernel_foundry.domain.archive import RunSpec
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.task import Task, Workload
from kernel_foundry.errors import ServiceUnavailableError
from kernel_foundry.rpc.archive import RemoteArchive
from kernel_foundry.rpc.generator import RemoteGenerator
from kernel_foundry.rpc.readiness import wait_until_serving


@asynccontextmanager
async def process(*arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a service as a user would; it is gone at the end."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", *arguments, stderr=asyncio.subprocess.PIPE
    )
    try:
        yield child
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()


def _spec(name: str) -> RunSpec:
    return RunSpec(
        name=name,
        task=Task(name="t", reference="...", workloads=(Workload(name="default"),)),
        language=Language.SYCL,
        device="sycl:0",
        models=("recipes",),
        strategy="fitness",
        seed=1,
    )


async def test_archive_process_keeps_what_was_told_over_sigkill(tmp_path: Path) -> None:
    """The socket a killed process left behind is taken over; the run is still there."""
    command = (
        "archive_svc",
        *("--listen", f"unix:{tmp_path}/s"),
        *("--store", f"sqlite:///{tmp_path}/runs.db"),
    )
    archive = RemoteArchive(f"unix:{tmp_path}/s")
    async with process(*command) as child:
        await wait_until_serving(f"unix:{tmp_path}/s", timeout_s=30)
        run = await archive.create_run(_spec("first"))
        child.send_signal(signal.SIGKILL)
        await child.wait()
    async with process(*command) as child:
        await wait_until_serving(f"unix:{tmp_path}/s", timeout_s=30)
        assert await archive.list_runs() == (run,)
        child.send_signal(signal.SIGTERM)
        assert await child.wait() == 0
    await archive.close()


async def test_generator_process_offers_recipes(tmp_path: Path) -> None:
    """Without any key there is still a model; SIGINT ends it as SIGTERM does."""
    generator = RemoteGenerator(f"unix:{tmp_path}/s")
    command = ("generator_svc", "--listen", f"unix:{tmp_path}/s", "--exchanges", f"{tmp_path}/e")
    async with process(*command) as child:
        await wait_until_serving(f"unix:{tmp_path}/s", timeout_s=30)
        assert "recipes" in await generator.list_models()
        child.send_signal(signal.SIGINT)
        assert await child.wait() == 0
    await generator.close()


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("--listen", "unix:/nowhere/s"), 3, b"error: cannot listen on unix:/nowhere/s"),
        ((), 2, b"Missing option '--listen'"),
    ],
    ids=["address", "usage"],
)
async def test_process_that_cannot_start_says_why(
    tmp_path: Path, arguments: tuple[str, ...], status: int, message: bytes
) -> None:
    """One line and an exit status, no traceback."""
    store = ("--store", f"sqlite:///{tmp_path}/runs.db")
    async with process("archive_svc", *store, *arguments) as child:
        _, errors = await child.communicate()
    assert child.returncode == status
    assert message in errors
    assert b"Traceback" not in errors


async def test_service_that_never_comes_up_is_named(tmp_path: Path) -> None:
    """Waiting ends at its time-out."""
    with pytest.raises(ServiceUnavailableError, match=r"/s: not serving within 0.1 s"):
        await wait_until_serving(f"unix:{tmp_path}/s", timeout_s=0.1)
