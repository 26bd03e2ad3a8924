"""Services as processes: they come up, answer, survive SIGKILL's aftermath, and stop on SIGTERM."""

import asyncio
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import click
import grpc
import pytest
from click.testing import CliRunner
from grpc_health.v1 import health_pb2, health_pb2_grpc

from kernel_foundry.domain.archive import RunSpec
from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.errors import InvalidArgumentError, ServiceUnavailableError
from kernel_foundry.rpc.archive import RemoteArchive
from kernel_foundry.rpc.connection import CallOptions, RetryPolicy
from kernel_foundry.rpc.evaluator import RemoteEvaluator
from kernel_foundry.rpc.generator import RemoteGenerator
from kernel_foundry.rpc.metrics import Metrics
from kernel_foundry.rpc.process import service_options
from kernel_foundry.rpc.readiness import wait_until_serving
from kernel_foundry.rpc.security import ServerSecurity
from tests.domain_values import run_spec


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


@asynccontextmanager
async def serving(
    module: str, target: str, *options: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a service until it is SERVING; one that ends instead fails the test."""
    async with process(module, "--listen", target, *options) as child:
        ready = asyncio.create_task(wait_until_serving(target, timeout_s=280))
        ended = asyncio.create_task(child.communicate())
        await asyncio.wait({ready, ended}, return_when=asyncio.FIRST_COMPLETED)
        if ended.done():
            ready.cancel()
            pytest.fail(ended.result()[1].decode())
        await ready
        yield child
    await ended


def _spec(name: str) -> RunSpec:
    return run_spec(name, device="sycl:0", models=("recipes",), seed=1)


async def test_archive_process_keeps_what_was_told_over_sigkill(tmp_path: Path) -> None:
    """The socket a killed process left behind is taken over; the run is still there."""
    target = f"unix:{tmp_path}/s"
    store = ("--store", f"sqlite:///{tmp_path}/runs.db")
    archive = RemoteArchive(target)
    async with serving("archive_svc", target, *store) as child:
        run = await archive.create_run(_spec("first"))
        child.send_signal(signal.SIGKILL)
        await child.wait()
    async with serving("archive_svc", target, *store) as child:
        assert await archive.list_runs() == (run,)
        child.send_signal(signal.SIGTERM)
        assert await child.wait() == 0
    await archive.close()


async def test_generator_process_offers_recipes(tmp_path: Path) -> None:
    """Without any key there is still a model; SIGINT ends it as SIGTERM does."""
    target = f"unix:{tmp_path}/s"
    generator = RemoteGenerator(target)
    async with serving("generator_svc", target, "--exchanges", f"{tmp_path}/e") as child:
        assert "recipes" in await generator.list_models()
        child.send_signal(signal.SIGINT)
        assert await child.wait() == 0
    await generator.close()


async def test_evaluator_process_serves_its_device_kinds(tmp_path: Path) -> None:
    """`--device` chooses the kinds; SIGTERM ends the service and its children."""
    target = f"unix:{tmp_path}/s"
    evaluator = RemoteEvaluator(target)
    options = ("--device", "null", "--unsafe-no-sandbox")
    async with serving("evaluator_svc", target, *options) as child:
        capabilities = await evaluator.capabilities()
        assert [device.id for device in capabilities.devices] == ["null:0"]
        child.send_signal(signal.SIGTERM)
        assert await child.wait() == 0
    await evaluator.close()


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("--listen", "unix:/nowhere/s"), 3, b"error: cannot listen on unix:/nowhere/s"),
        (("--listen", "localhost:99999"), 2, b"error: --listen 'localhost:99999': expected"),
        (("--store", "sqlite:////nowhere/x/r.db"), 2, b"error: there is no folder /nowhere/x"),
        (("--nonsense",), 2, b"Usage: kfoundry serve archive "),
    ],
    ids=["folder", "port", "store", "usage"],
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


def test_a_variable_of_clients_opens_no_service(monkeypatch: pytest.MonkeyPatch) -> None:
    """It lets a token travel without TLS, and a service has to be opened by an option."""

    @click.command()
    @service_options
    def credentials(security: ServerSecurity, metrics: Metrics | None) -> None:
        security.credentials("0.0.0.0:50051")

    monkeypatch.setenv("KERNEL_FOUNDRY_INSECURE", "1")
    with pytest.raises(InvalidArgumentError, match="--insecure"):
        CliRunner().invoke(credentials, catch_exceptions=False)
    assert CliRunner().invoke(credentials, ["--insecure"]).exit_code == 0


_HANGS = """
import asyncio, pathlib, sys, time
from concurrent.futures import ThreadPoolExecutor
from evaluator_svc.service import evaluator_service
from kernel_foundry.rpc import server
from kernel_foundry.rpc.process import run
from kernel_foundry.testing.evaluator import FakeEvaluator

class Hanging(FakeEvaluator):
    async def evaluate(self, request):
        pathlib.Path(sys.argv[2]).touch()
        return await asyncio.wrap_future(threads.submit(time.sleep, 3600))

threads = ThreadPoolExecutor()
server.CLOSE_S = 1.0
services = [evaluator_service(Hanging())]
run(server.serve(services, sys.argv[1], grace_s=0.1), "evaluator")
"""


def _wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.02)


async def test_a_service_ends_after_its_grace_whatever_is_in_progress(tmp_path: Path) -> None:
    """Here a thread that nobody can stop; how many calls are cut is in the log."""
    target, began = f"unix:{tmp_path}/s", tmp_path / "began"
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _HANGS, target, began, stderr=asyncio.subprocess.PIPE
    )
    await wait_until_serving(target, timeout_s=280)
    client = RemoteEvaluator(target, CallOptions(retry=RetryPolicy(attempts=1)))
    task, source = _spec("r").task, KernelSource(language=Language.SYCL, device_code="", plan="")
    asked = EvaluationRequest(task=task, device="", source=source)
    call = asyncio.ensure_future(client.evaluate(asked))
    await asyncio.to_thread(_wait_for, began)
    child.send_signal(signal.SIGTERM)
    with pytest.raises(ServiceUnavailableError):
        await call
    _, said = await child.communicate()
    assert child.returncode == 0
    assert b"listening at unix:" in said
    assert b"stopping: calls in flight: 1, which have up to 0.1 s" in said
    assert b"work that was in progress is given up" in said
    await client.close()


async def test_service_that_never_comes_up_is_named(tmp_path: Path) -> None:
    """Waiting ends at its time-out."""
    with pytest.raises(ServiceUnavailableError, match=r"/s: not serving within 0.1 s"):
        await wait_until_serving(f"unix:{tmp_path}/s", timeout_s=0.1)


class _Health(health_pb2_grpc.HealthServicer):  # type: ignore[misc]  # has no types
    """Breaks as often as it has codes; serves then."""

    def __init__(self, *codes: grpc.StatusCode) -> None:
        self.codes = list(codes)

    async def Watch(  # noqa: N802  (gRPC's name)
        self,
        request: health_pb2.HealthCheckRequest,
        context: "grpc.aio.ServicerContext[Any, Any]",
    ) -> AsyncIterator[health_pb2.HealthCheckResponse]:
        if self.codes:
            await context.abort(self.codes.pop(0), "the socket is closed")
        yield health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING)


@asynccontextmanager
async def telling(target: str, health: _Health) -> AsyncIterator[None]:
    """Serve a health at an address."""
    server = grpc.aio.server()
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    server.add_insecure_port(target)
    await server.start()
    try:
        yield
    finally:
        await server.stop(0)


async def test_a_connection_of_a_dead_service_is_not_the_answer_of_the_next(tmp_path: Path) -> None:
    """It is asked again where the connection breaks; another error of it is said."""
    target = f"unix:{tmp_path}/s"
    broken = _Health(grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNAVAILABLE)
    async with telling(target, broken):
        await wait_until_serving(target, timeout_s=280)
    assert not broken.codes
    async with telling(target, _Health(grpc.StatusCode.UNIMPLEMENTED)):
        with pytest.raises(ServiceUnavailableError, match="UNIMPLEMENTED: the socket is closed"):
            await wait_until_serving(target, timeout_s=280)
