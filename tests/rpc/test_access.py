"""Who may call a service: tokens, roles, TLS. Hostile clients: `test_hostile_clients.py`."""

import asyncio
import json
import re
import stat
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import grpc
import pytest
from click.testing import CliRunner
from grpc_health.v1 import health_pb2, health_pb2_grpc

from archive_svc.archive import LocalArchive
from archive_svc.service import archive_service
from evaluator_svc.service import evaluator_service
from kernel_foundry.archive.v1 import archive_service_pb2 as archive_pb2
from kernel_foundry.cli import token as token_command
from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.task import Task, Workload
from kernel_foundry.errors import (
    InvalidArgumentError,
    KernelFoundryError,
    PermissionDeniedError,
    ServiceUnavailableError,
    UnauthenticatedError,
)
from kernel_foundry.evaluator.v1 import evaluator_service_pb2 as pb2
from kernel_foundry.generator.v1 import experience_service_pb2 as experience_pb2
from kernel_foundry.generator.v1 import generator_service_pb2 as generator_pb2
from kernel_foundry.rpc.archive import RemoteArchive
from kernel_foundry.rpc.connection import CallOptions, RetryPolicy
from kernel_foundry.rpc.evaluator import RemoteEvaluator
from kernel_foundry.rpc.method_roles import needed_role
from kernel_foundry.rpc.metrics import serve_metrics
from kernel_foundry.rpc.security import ClientSecurity, ServerSecurity
from kernel_foundry.rpc.server import Service, running
from kernel_foundry.rpc.tokens import Role, TokenFile
from kernel_foundry.testing.evaluator import FakeEvaluator
from tests.contract.archive_entries import candidate_of, verdict_on
from tests.domain_values import run_spec
from tests.rpc.authority import Authority
from tests.rpc.gateway import gateway_before

LOOPBACK = "127.0.0.1:0"
ONCE = CallOptions(retry=RetryPolicy(attempts=1), quick_deadline_s=60.0, work_deadline_s=60.0)
TASK = Task(name="t", reference="class Model: ...", workloads=(Workload(name="default"),))
SOURCE = KernelSource(language=Language.SYCL, device_code="", plan="nothing")
REQUEST = EvaluationRequest(task=TASK, device="", source=SOURCE, request_id="mine")
_VARIABLES = ("TOKEN", "TLS_CA", "TLS_CLIENT_CERT", "TLS_CLIENT_KEY", "INSECURE")


@pytest.fixture(params=["server", "gateway"])
def serving(request: pytest.FixtureRequest) -> Callable[..., AbstractAsyncContextManager[str]]:
    """Serve a service as `running` does, or by a gateway that alone asks who comes."""

    @asynccontextmanager
    async def behind(service: Service, security: ServerSecurity) -> AsyncIterator[str]:
        async with (
            running([service], LOOPBACK) as target,
            gateway_before(target, security=security) as address,
        ):
            yield address

    def alone(service: Service, security: ServerSecurity) -> AbstractAsyncContextManager[str]:
        return running([service], LOOPBACK, security=security)

    return alone if request.param == "server" else behind


@pytest.fixture
def tokens(tmp_path: Path) -> TokenFile:
    return TokenFile(tmp_path / "tokens.json")


@asynccontextmanager
async def calling(
    target: str, patch: pytest.MonkeyPatch, **environment: str
) -> AsyncIterator[RemoteEvaluator]:
    """Connect as somebody whose environment is this."""
    with patch.context() as inner:
        for name in _VARIABLES:
            inner.delenv(f"KERNEL_FOUNDRY_{name}", raising=False)
        for name, value in environment.items():
            inner.setenv(f"KERNEL_FOUNDRY_{name}", value)
        remote = RemoteEvaluator(target, ONCE)
    try:
        yield remote
    finally:
        await remote.close()


async def _error(target: str, patch: pytest.MonkeyPatch, **environment: str) -> KernelFoundryError:
    async with calling(target, patch, **environment) as client:
        with pytest.raises(KernelFoundryError) as caught:
            await client.evaluate(REQUEST)
    return caught.value


async def test_each_wrong_token_is_refused_and_the_right_one_is_let_in(
    request: pytest.FixtureRequest,
    serving: Any,
    tmp_path: Path,
    tokens: TokenFile,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    good = tokens.create("ada", Role.RUN, 1)
    expired = tokens.create("old", Role.ADMIN, 0)
    revoked = tokens.create("left", Role.ADMIN, 1)
    reader = tokens.create("reader", Role.READ, 1)
    foreign = TokenFile(tmp_path / "other.json").create("ada", Role.ADMIN, 1)
    forged = good[:-1] + ("0" if good[-1] != "0" else "1")
    audit = tmp_path / "audit.jsonl"
    security = ServerSecurity(tokens=tmp_path / "tokens.json", audit_log=audit)
    async with serving(evaluator_service(FakeEvaluator()), security) as target:
        async with calling(target, monkeypatch, TOKEN=revoked) as client:
            assert (await client.evaluate(REQUEST)).passed
            tokens.revoke(revoked.split("_")[1])
            with pytest.raises(UnauthenticatedError):
                await client.evaluate(REQUEST)
        for wrong in ("", "nonsense", foreign, forged, expired, revoked):
            assert isinstance(
                await _error(target, monkeypatch, TOKEN=wrong), UnauthenticatedError
            ), wrong
        assert isinstance(await _error(target, monkeypatch, TOKEN=reader), PermissionDeniedError)
        async with calling(target, monkeypatch, TOKEN=reader) as client:
            assert (await client.capabilities()).devices
        async with calling(target, monkeypatch, TOKEN=good) as client:
            assert (await client.evaluate(REQUEST)).passed
        async with grpc.aio.insecure_channel(target) as channel:
            health = health_pb2_grpc.HealthStub(channel)
            assert (await health.Check(health_pb2.HealthCheckRequest())).status == 1
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    assert [line["outcome"] for line in lines].count("UNAUTHENTICATED") == 7
    assert [line["outcome"] for line in lines].count("PERMISSION_DENIED") == 1
    refused = [line["who"] for line in lines if line["outcome"] == "PERMISSION_DENIED"]
    assert refused == [f"reader ({reader.split('_')[1]})"]
    assert all(line["peer"].startswith("ipv4:127.0.0.1:") for line in lines)
    last = lines[-1]
    assert last["who"].startswith("ada (")
    assert (last["method"].rpartition("/")[2], last["request_id"], last["outcome"]) == (
        "EvaluateKernel",
        "" if "gateway" in request.node.name else "mine",  # a gateway reads no request
        "OK",
    )
    kept = (tmp_path / "tokens.json").read_text()
    assert not any(t.rpartition("_")[2] in kept for t in (good, reader, revoked))
    assert stat.S_IMODE((tmp_path / "tokens.json").stat().st_mode) == 0o600


async def test_removing_is_not_for_readers(
    serving: Any, tmp_path: Path, tokens: TokenFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And streams are refused as calls are. Whose runs are: `tests/archive/test_owners.py`."""
    monkeypatch.setenv("KERNEL_FOUNDRY_TOKEN", tokens.create("ada", Role.READ, 1))
    security = ServerSecurity(tokens=tmp_path / "tokens.json")
    async with serving(
        archive_service(LocalArchive(f"sqlite:///{tmp_path}/runs.db")), security
    ) as target:
        archive = RemoteArchive(target, ONCE)
        with pytest.raises(PermissionDeniedError, match="run"):
            await archive.delete_run("any")
        await archive.close()
        monkeypatch.delenv("KERNEL_FOUNDRY_TOKEN")
        archive = RemoteArchive(target, ONCE)
        with pytest.raises(UnauthenticatedError):
            await anext(archive.watch("any"))
        await archive.close()


async def test_a_stream_ends_with_its_token(
    serving: Any, tmp_path: Path, tokens: TokenFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is said after a revocation is not for whom was let in before it."""
    token = tokens.create("ada", Role.READ, 1)
    audit = tmp_path / "audit.jsonl"
    security = ServerSecurity(tokens=tmp_path / "tokens.json", audit_log=audit)
    store, spec = LocalArchive(f"sqlite:///{tmp_path}/runs.db"), run_spec("first")
    await store.create_run(spec)

    async def add(text: str) -> None:
        candidate = candidate_of(text)
        verdict = await verdict_on(spec.task, candidate)
        await store.add("first", candidate, verdict, request_id=text)

    await add("1")
    async with serving(archive_service(store), security) as target:
        monkeypatch.setenv("KERNEL_FOUNDRY_TOKEN", token)
        archive = RemoteArchive(target, ONCE)
        async with asyncio.timeout(280), aclosing(archive.watch("first")) as events:
            assert (await anext(events)).sequence == 1
            tokens.revoke(token.split("_")[1])
            await add("2")
            with pytest.raises(UnauthenticatedError):
                await anext(events)
        await archive.close()
    (line,) = [json.loads(line) for line in audit.read_text().splitlines()]
    assert (line["who"][:4], line["outcome"]) == ("ada ", "UNAUTHENTICATED")


async def test_without_the_file_no_token_is_valid(
    tmp_path: Path, tokens: TokenFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever takes it away, or damages it, lets nobody in; those let in before neither."""
    token = tokens.create("ada", Role.RUN, 1)
    file = tmp_path / "tokens.json"
    security = ServerSecurity(tokens=file)
    async with (
        running([evaluator_service(FakeEvaluator())], LOOPBACK, security=security) as target,
        calling(target, monkeypatch, TOKEN=token) as client,
    ):
        assert (await client.evaluate(REQUEST)).passed
        file.unlink()
        with pytest.raises(UnauthenticatedError):
            await client.evaluate(REQUEST)
        file.mkdir()
        with pytest.raises(InvalidArgumentError, match="tokens"):
            await client.evaluate(REQUEST)


async def test_what_is_refused_is_not_received(
    serving: Any, tmp_path: Path, tokens: TokenFile
) -> None:
    """A handler of one request would get it whole first, from anybody who sends megabytes."""
    tokens.create("ada", Role.RUN, 1)
    security = ServerSecurity(tokens=tmp_path / "tokens.json")
    service = "/kernel_foundry.evaluator.v1.EvaluatorService"
    async with (
        serving(evaluator_service(FakeEvaluator()), security) as target,
        grpc.aio.insecure_channel(target) as channel,
    ):
        for method in ("EvaluateKernel", "SweepKernel"):
            # The request is never sent: only who does not wait for it can answer.
            call: Any = channel.stream_stream(f"{service}/{method}")(timeout=280)
            async with asyncio.timeout(280):
                assert await call.code() is grpc.StatusCode.UNAUTHENTICATED


def test_every_method_has_a_role() -> None:
    """One that nobody thought of needs the highest."""
    services = (
        archive_pb2.DESCRIPTOR.services_by_name["ArchiveService"],
        pb2.DESCRIPTOR.services_by_name["EvaluatorService"],
        generator_pb2.DESCRIPTOR.services_by_name["GeneratorService"],
        experience_pb2.DESCRIPTOR.services_by_name["ExperienceService"],
    )
    names = {method.name for service in services for method in service.methods}
    needs_admin = {name for name in names if needed_role(f"/any.Service/{name}") is Role.ADMIN}
    assert needs_admin == set()
    assert needed_role("/kernel_foundry.future.v1.Service/Anything") is Role.ADMIN
    assert needed_role("/grpc.health.v1.Health/Check") is None


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "example.org:50051"])
async def test_other_machines_are_let_in_only_when_that_is_said(
    tmp_path: Path, tokens: TokenFile, address: str
) -> None:
    """Tokens alone would travel for all to read, and TLS alone knows no client."""
    tokens.create("ada", Role.RUN, 1)
    for security in (ServerSecurity(), ServerSecurity(tokens=tmp_path / "tokens.json")):
        with pytest.raises(InvalidArgumentError, match="--insecure"):
            async with running([], address, security=security):
                pass
    if address == "0.0.0.0:0":
        async with running([], address, security=ServerSecurity(insecure=True)):
            pass


async def test_a_token_is_not_sent_in_the_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is sent, the client says what to set."""
    monkeypatch.setenv("KERNEL_FOUNDRY_TOKEN", "kf_x")
    monkeypatch.delenv("KERNEL_FOUNDRY_TLS_CA", raising=False)
    with pytest.raises(InvalidArgumentError, match="KERNEL_FOUNDRY_TLS_CA"):
        RemoteEvaluator("gpuhost:50051", ONCE)


async def test_mutual_tls_lets_in_whom_the_authority_signed(
    serving: Any, tmp_path: Path, tokens: TokenFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a client without certificate, nor one of another authority, nor one without TLS."""
    own, other = Authority.make(tmp_path / "own"), Authority.make(tmp_path / "other")
    certificate, key = own.issue("service")
    security = ServerSecurity(
        certificate=certificate,
        key=key,
        client_ca=tmp_path / "own" / "ca.pem",
        tokens=tmp_path / "tokens.json",
    )
    token = tokens.create("ada", Role.RUN, 1)

    def shown(authority: Authority) -> dict[str, str]:
        client, client_key = authority.issue("client")
        return {"TLS_CLIENT_CERT": str(client), "TLS_CLIENT_KEY": str(client_key)}

    ca = {"TLS_CA": str(tmp_path / "own" / "ca.pem")}
    async with serving(evaluator_service(FakeEvaluator()), security) as target:
        async with calling(target, monkeypatch, TOKEN=token, **ca, **shown(own)) as client:
            assert (await client.evaluate(REQUEST)).passed
        foreign_ca = {"TLS_CA": str(tmp_path / "other" / "ca.pem")}
        for environment in ({}, ca, ca | shown(other), foreign_ca | shown(own)):
            error = await _error(target, monkeypatch, TOKEN=token, **environment)
            assert isinstance(error, ServiceUnavailableError), environment
            assert ("set KERNEL_FOUNDRY_TLS_CA" in error.message) == (not environment)
            assert ("set KERNEL_FOUNDRY_TLS_CLIENT_CERT" in error.message) == (environment == ca)
        error = await _error(target, monkeypatch, **ca, **shown(own))
        assert isinstance(error, UnauthenticatedError)


_WRONG_FILES: Final = {
    "no key": (("ca", "one.pem", ""), "its key"),
    "no certificate": (("ca", "", "one.key"), "its key"),
    "another's key": (("ca", "one.pem", "other/one.key"), "one.key: it is not the key of"),
    "no key in it": (("ca", "one.pem", "one.pem"), "one.pem: it has no private key"),
    "no certificate in it": (("ca", "one.key", "one.key"), "one.key: it has no certificate"),
    "an empty authority": (("empty", "one.pem", "one.key"), "empty.pem: it has no certificate"),
    "no authority": (("missing", "one.pem", "one.key"), "missing.pem: No such file"),
}
"""Authority, certificate and key; and what is said of them."""


@pytest.mark.parametrize("names", _WRONG_FILES)
def test_files_that_are_no_pair_are_refused_before_grpc_has_them(
    tmp_path: Path, names: str
) -> None:
    """It would abort the process, or name no file; the same for clients, services and figures."""
    for authority in (Authority.make(tmp_path / "own"), Authority.make(tmp_path / "own" / "other")):
        authority.issue("one")
    (tmp_path / "own" / "empty.pem").write_text("nothing\n")
    (ca, *pair), complaint = _WRONG_FILES[names]
    authority_file = tmp_path / "own" / f"{ca}.pem"
    certificate, key = (tmp_path / "own" / name if name else None for name in pair)
    security = ServerSecurity(client_ca=authority_file, certificate=certificate, key=key)
    client = ClientSecurity(ca=authority_file, certificate=certificate, key=key)
    for use in (
        lambda: security.credentials(LOOPBACK),
        lambda: serve_metrics(LOOPBACK, security),
        lambda: client.channel("localhost:1", ()),
    ):
        with pytest.raises(InvalidArgumentError, match=re.escape(complaint)) as refused:
            use()
        assert refused.value.metadata["field"] == "tls"


async def test_who_comes_with_tls_where_there_is_none_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And where nothing listens, nothing is said of TLS."""
    Authority.make(tmp_path / "own")
    ca = str(tmp_path / "own" / "ca.pem")
    async with running([evaluator_service(FakeEvaluator())], LOOPBACK) as target:
        error = await _error(target, monkeypatch, TLS_CA=ca)
        assert "unset KERNEL_FOUNDRY_TLS_CA" in error.message
    assert "TLS_CA" not in (await _error(target, monkeypatch, TLS_CA=ca)).message


async def test_a_file_of_tokens_that_is_not_there_is_said_at_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody is let in until it is made, which a typing error in its name would hide."""
    file = tmp_path / "tokens.json"
    async with running([], LOOPBACK, security=ServerSecurity(tokens=file)):
        pass
    assert f"`kfoundry token create NAME --tokens {file}`" in caplog.text


def test_no_revocation_is_lost_to_a_token_that_is_made_meanwhile(tmp_path: Path) -> None:
    """Two processes write the same file."""
    path = tmp_path / "tokens.json"
    ids = [TokenFile(path).create(f"n{i}", Role.READ, 1).split("_")[1] for i in range(20)]
    with ThreadPoolExecutor(4) as threads:
        for one in ids:
            threads.submit(TokenFile(path).revoke, one)
            threads.submit(TokenFile(path).create, "other", Role.READ, 1)
    found = TokenFile(path).tokens()
    assert {token.id for token in found if token.is_revoked} == set(ids)
    assert len(found) == 40


def test_a_token_ends_some_day(tokens: TokenFile) -> None:
    """No number of days is reached never."""
    with pytest.raises(InvalidArgumentError, match="days"):
        tokens.create("ada", Role.READ, float("nan"))


def test_tokens_are_made_listed_and_revoked(tmp_path: Path) -> None:
    """A token is shown once, and the list has what is kept of it."""
    file = str(tmp_path / "t.json")

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(
            token_command.command, [*arguments, "--tokens", file], standalone_mode=False
        )
        assert result.exception is None, result.exception
        return result.stdout

    made = run("create", "ada", "--role", "read", "--days", "2").strip()
    assert made.startswith("kf_")
    assert "\n" not in made
    found = json.loads(run("list", "--json"))["tokens"]
    assert [(t["name"], t["role"], t["revoked"]) for t in found] == [("ada", "read", False)]
    assert made.rpartition("_")[2] not in run("list", "--json")
    run("revoke", found[0]["id"])
    assert json.loads(run("list", "--json"))["tokens"][0]["revoked"] is True


def test_tokens_of_a_file_that_is_not_there_are_not_listed(tmp_path: Path) -> None:
    """An empty table would hide a typing error in its name."""
    result = CliRunner().invoke(token_command.command, ["list", "--tokens", f"{tmp_path}/no.json"])
    assert isinstance(result.exception, InvalidArgumentError)
    assert f"there is no {tmp_path}/no.json" in result.exception.message


@pytest.mark.parametrize("text", ["{", "[1]", '[{"id": 1}]', "[" * 5000])
def test_a_file_that_holds_no_tokens_is_said(tmp_path: Path, text: str) -> None:
    """A service does not start with it."""
    path = tmp_path / "tokens.json"
    path.write_text(text)
    with pytest.raises(InvalidArgumentError, match="not a token file"):
        TokenFile(path).tokens()
