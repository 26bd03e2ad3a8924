"""One address for all services: what passes a gateway, whom it lets through, what it refuses.

What services promise behind it is in tests/contract; calls that fail, leave or are late are in
`test_server.py`, wrong tokens in `test_access.py`, hostile clients in `test_hostile_clients.py`.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from click.testing import CliRunner

from archive_svc.archive import LocalArchive
from archive_svc.service import archive_service
from evaluator_svc.service import SERVICE, evaluator_service
from generator_svc.experience.library import ExperienceLibrary
from generator_svc.experience_service import experience_service
from generator_svc.service import generator_service
from generator_svc.store.store import GeneratorStore
from kernel_foundry.errors import (
    InvalidArgumentError,
    MalformedAnswerError,
    PermissionDeniedError,
    QuotaExceededError,
    ServiceUnavailableError,
    ShuttingDownError,
)
from kernel_foundry.rpc import forwarding, gateway
from kernel_foundry.rpc.applications import LIST_APPLICATIONS, applications
from kernel_foundry.rpc.archive import RemoteArchive
from kernel_foundry.rpc.connection import CallOptions, RetryPolicy
from kernel_foundry.rpc.evaluator import RemoteEvaluator
from kernel_foundry.rpc.gateway import check_tokens, gateway_services
from kernel_foundry.rpc.security import ServerSecurity
from kernel_foundry.rpc.server import running
from kernel_foundry.rpc.tokens import Role, TokenFile
from kernel_foundry.sdk.services import Directory, Targets
from kernel_foundry.testing.evaluator import FakeEvaluator
from kernel_foundry.testing.generator import FakeGenerator
from tests.contract.archive_entries import candidate_of, verdict_on
from tests.domain_values import run_spec
from tests.rpc.authority import Authority
from tests.rpc.gateway import gateway_before
from tests.rpc.test_access import REQUEST

LOOPBACK = "127.0.0.1:0"
ONCE = CallOptions(retry=RetryPolicy(attempts=1))
METHOD = f"/{SERVICE.full_name}/EvaluateKernel"


READ = f"/{SERVICE.full_name}/GetCapabilities"


class _Ingress(grpc.GenericRpcHandler):
    """Knows two applications, notes what an evaluation brings, and ends it as it says."""

    def __init__(self) -> None:
        self.metadata: dict[str, str | bytes] = {}
        self.seconds_left: float | None = None

    def service(self, details: Any) -> Any:
        known = {METHOD: self._answer, READ: self._read, LIST_APPLICATIONS: self._list}
        answer = known.get(details.method)
        return grpc.unary_unary_rpc_method_handler(answer) if answer else None

    listed: bytes | None = b"\x0a\x04h200\x0a\x04sycl"
    """None once: it is away for a moment."""
    closed = ("h200",)
    """Applications that ask for tokens."""

    async def _list(self, _request: bytes, context: Any) -> bytes:
        listed, self.listed = self.listed, self.listed or _Ingress.listed
        if listed is None:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "away")
        return listed

    async def _read(self, _request: bytes, context: Any) -> bytes:
        metadata = dict(context.invocation_metadata())
        if metadata["application"] in self.closed and "authorization" not in metadata:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "who?")
        return b""

    async def _answer(self, request: bytes, context: Any) -> bytes:
        self.metadata = dict(context.invocation_metadata())
        self.seconds_left = context.time_remaining()
        trailing = (("left", "behind"), ("left-bin", b"\xff"))
        if request == b"fail":
            await context.abort(grpc.StatusCode.DATA_LOSS, "lost", trailing)
        context.set_trailing_metadata(trailing)
        return request


@pytest.fixture
async def ingress() -> AsyncIterator[tuple[_Ingress, str]]:
    """Yield an ingress and the address of a gateway before it."""
    async with (
        _serving(_Ingress()) as (handler, port),
        gateway_before(f"localhost:{port}") as address,  # it listens at 127.0.0.1 alone
    ):
        yield handler, address


@asynccontextmanager
async def _serving(handler: _Ingress) -> AsyncIterator[tuple[_Ingress, int]]:
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((handler,))
    port = server.add_insecure_port(LOOPBACK)
    await server.start()
    yield handler, port
    await server.stop(1.0)


async def test_metadata_deadlines_and_how_a_call_ended_pass(ingress: tuple[_Ingress, str]) -> None:
    handler, address = ingress
    async with grpc.aio.insecure_channel(address) as channel:
        method: Any = channel.unary_unary(METHOD)
        shown = (("application", "h200"), ("authorization", "Bearer x"), ("of-bytes-bin", b"\x00"))
        call = method(b"\xff\xff", timeout=50, metadata=shown)
        assert await call == b"\xff\xff"
        assert dict(await call.trailing_metadata()) == {"left": "behind", "left-bin": b"\xff"}
        assert handler.metadata.items() >= dict(shown).items()
        assert handler.seconds_left is not None
        assert 0 < handler.seconds_left < 60  # gRPC rounds it up
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await method(b"fail")
        assert handler.seconds_left is None
    error = caught.value
    assert (error.code(), error.details()) == (grpc.StatusCode.DATA_LOSS, "lost")
    assert dict(error.trailing_metadata()) == {"left": "behind", "left-bin": b"\xff"}


async def test_a_call_without_a_request_is_refused(ingress: tuple[_Ingress, str]) -> None:
    _, address = ingress
    async with grpc.aio.insecure_channel(address) as channel:
        call: Any = channel.stream_stream(METHOD)()
        await call.done_writing()
        assert await call.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_applications_are_found_behind_it(ingress: tuple[_Ingress, str]) -> None:
    """And none where no ingress is."""
    assert await applications(ingress[1]) == ("h200", "sycl")
    async with running([evaluator_service(FakeEvaluator())], LOOPBACK) as target:
        assert await applications(target) == ()


@pytest.mark.parametrize(
    "listed",
    [b"\x0a\x09h200,evil", b"\x0a\x01/", b"\xff", b"\x0a\x01a" * 22_000],
    ids=["comma", "slash", "no message", "66 kB"],
)
async def test_what_is_no_list_of_applications_is_refused(
    ingress: tuple[_Ingress, str], listed: bytes
) -> None:
    """A name is a part of a target, and a comma would make another one, which gets the token."""
    ingress[0].listed = listed
    with pytest.raises(MalformedAnswerError):
        await applications(ingress[1])


async def test_an_ingress_without_applications_is_no_evaluator(
    ingress: tuple[_Ingress, str],
) -> None:
    ingress[0].listed = b""
    with pytest.raises(ServiceUnavailableError, match="no applications"):
        await applications(ingress[1], ONCE)


async def test_two_that_ask_at_once_get_one_evaluator(ingress: tuple[_Ingress, str]) -> None:
    """Also where a gateway is away for a moment: it is asked again."""
    ingress[0].listed = None
    directory = Directory(Targets.at(ingress[1]))
    first, second = await asyncio.gather(directory.evaluator(), directory.evaluator())
    assert first is second
    await directory.close()


def _library(folder: Path) -> ExperienceLibrary:
    store = GeneratorStore(f"sqlite:///{folder}/generator.db")
    return ExperienceLibrary(store, seeds={}, owns_store=True)


async def test_services_that_ask_for_no_tokens_are_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """To them all callers of a gateway are nobody. What is away is not known."""
    closed = ServerSecurity(tokens=tmp_path / "tokens.json")
    services = [generator_service(FakeGenerator()), experience_service(_library(tmp_path))]
    async with (
        running(
            [archive_service(LocalArchive(f"sqlite:///{tmp_path}/runs.db"))], LOOPBACK
        ) as archive,
        running(services, LOOPBACK, security=closed) as generator,
        _serving(_Ingress()) as (ray, port),
    ):
        with pytest.raises(InvalidArgumentError, match=f"{archive} asks for no tokens"):
            await check_tokens(archive=archive, generator=generator)
        with pytest.raises(InvalidArgumentError, match=f"127.0.0.1:{port}/sycl asks for no"):
            await check_tokens(ingress=f"localhost:{port}")
        ray.closed = ("h200", "sycl")
        caplog.clear()
        await check_tokens(ingress=f"localhost:{port}", generator=generator)
        assert not caplog.records
    await check_tokens(ingress="127.0.0.1:1", archive="127.0.0.1:1")
    assert [record.args[0] for record in caplog.records if record.args] == ["127.0.0.1:1"] * 2


async def test_a_stream_without_end_ends_when_a_gateway_stops(tmp_path: Path) -> None:
    """As the archive's own do: it keeps no stop waiting for its grace."""
    store = LocalArchive(f"sqlite:///{tmp_path}/runs.db")
    await store.create_run(run_spec("first", task=REQUEST.task))
    candidate = candidate_of("new")
    verdict = await verdict_on(REQUEST.task, candidate)
    await store.add("first", candidate, verdict, request_id="1")
    has_begun = asyncio.Event()
    async with running([archive_service(store)], LOOPBACK) as target:
        async with running([*gateway_services(archive=target)], LOOPBACK, grace_s=5.0) as address:
            remote = RemoteArchive(address, ONCE)

            async def watch() -> None:
                async for _ in remote.watch("first"):
                    has_begun.set()

            watching = asyncio.create_task(watch())
            await has_begun.wait()
        with pytest.raises(ShuttingDownError):
            await watching
        await remote.close()


async def test_a_bug_of_a_gateway_leaks_no_text(
    ingress: tuple[_Ingress, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarding, "_OWN_HEADERS", 5)  # which no key can begin with
    async with grpc.aio.insecure_channel(ingress[1]) as channel:
        method: Any = channel.unary_unary(METHOD)
        with pytest.raises(grpc.aio.AioRpcError, match="internal error") as caught:
            await method(b"")
    assert caught.value.code() is grpc.StatusCode.INTERNAL


async def test_a_loop_needs_one_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By TLS, with the token that the services ask for as well."""
    authority = Authority.make(tmp_path / "own")
    certificate, key = authority.issue("gateway")
    tokens = tmp_path / "tokens.json"
    monkeypatch.setenv("KERNEL_FOUNDRY_TOKEN", TokenFile(tokens).create("ada", Role.RUN, 1))
    behind = [
        evaluator_service(FakeEvaluator()),
        archive_service(LocalArchive(f"sqlite:///{tmp_path}/runs.db")),
        generator_service(FakeGenerator()),
        experience_service(_library(tmp_path)),
    ]
    security = ServerSecurity(certificate=certificate, key=key, tokens=tokens)
    async with (
        running(behind, LOOPBACK, security=ServerSecurity(tokens=tokens)) as target,
        gateway_before(target, security=security) as address,
    ):
        monkeypatch.setenv("KERNEL_FOUNDRY_TLS_CA", str(tmp_path / "own" / "ca.pem"))
        directory = Directory(Targets.at(address))
        services = await directory.services()
        assert (await services.evaluator.evaluate(REQUEST)).passed
        assert await services.archive.list_runs() == ()
        assert await services.generator.list_models()
        assert await (await directory.experience()).lessons() == ()
        await directory.close()


async def test_users_own_their_runs_and_are_counted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the services, which see the token; a gateway with the same files counts nothing."""
    file = tmp_path / "tokens.json"
    tokens = TokenFile(file)
    ada = tokens.create("ada", Role.RUN, 1, evaluations=2)
    bob = tokens.create("bob", Role.RUN, 1)
    security = ServerSecurity(tokens=file)
    store = LocalArchive(f"sqlite:///{tmp_path}/runs.db")
    behind = [archive_service(store), evaluator_service(FakeEvaluator())]
    async with (
        running(behind, LOOPBACK, security=security) as target,
        gateway_before(target, security=security) as address,
    ):
        monkeypatch.setenv("KERNEL_FOUNDRY_TOKEN", ada)
        archive, evaluator = RemoteArchive(address, ONCE), RemoteEvaluator(address, ONCE)
        assert (await archive.create_run(run_spec("first"))).owner == "ada"
        for number in range(2):
            await evaluator.evaluate(replace(REQUEST, request_id=f"{number}"))
        with pytest.raises(QuotaExceededError):
            await evaluator.evaluate(REQUEST)
        monkeypatch.setenv("KERNEL_FOUNDRY_TOKEN", bob)
        other = RemoteArchive(address, ONCE)
        with pytest.raises(PermissionDeniedError):
            await other.delete_run("first")
        for client in (archive, evaluator, other):
            await client.close()


async def test_a_service_that_is_away_is_away_alone(tmp_path: Path) -> None:
    store = LocalArchive(f"sqlite:///{tmp_path}/runs.db")
    async with running([archive_service(store)], LOOPBACK) as target:
        services = [*gateway_services(ingress="127.0.0.1:1", archive=target)]
        async with running(services, LOOPBACK) as address:
            evaluator, archive = RemoteEvaluator(address, ONCE), RemoteArchive(address, ONCE)
            with pytest.raises(ServiceUnavailableError):
                await evaluator.capabilities()
            assert await archive.list_runs() == ()
            for client in (evaluator, archive):
                await client.close()


@pytest.mark.parametrize(
    ("where", "field"),
    [
        ({"ingress": "gpu1:9000"}, "ingress"),
        ({"archive": "unix:/run/archive.sock"}, "target"),
        ({"generator": "control:50053"}, "token"),
    ],
    ids=["ingress elsewhere", "no tokens there", "no TLS"],
)
async def test_what_would_carry_tokens_in_the_clear_or_drop_them_is_refused(
    where: dict[str, str], field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TLS_CA", "INSECURE"):
        monkeypatch.delenv(f"KERNEL_FOUNDRY_{name}", raising=False)
    with pytest.raises(InvalidArgumentError) as caught:
        [*gateway_services(**where)]
    assert caught.value.metadata["field"] == field


def test_a_gateway_before_nothing_is_refused() -> None:
    result = CliRunner().invoke(gateway.main, ["--listen", LOOPBACK])
    assert result.exit_code == 2
    assert "--ingress" in result.output
