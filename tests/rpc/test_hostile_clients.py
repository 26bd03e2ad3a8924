"""Clients that mean harm: refused, or ignored, while an honest one is answered all the time.

By a service itself, and by a gateway before it.
"""

import asyncio
import contextlib
import resource
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest

from kernel_foundry.archive.v1 import archive_service_pb2 as pb2
from kernel_foundry.domain.archive import AddResult, AddStatus
from kernel_foundry.errors import KernelFoundryError, PermissionDeniedError, UnauthenticatedError
from kernel_foundry.rpc.archive import RemoteArchive
from kernel_foundry.rpc.connection import CallOptions, RetryPolicy
from kernel_foundry.rpc.limits import MESSAGE_LIMIT_BYTES
from kernel_foundry.rpc.readiness import wait_until_serving
from kernel_foundry.rpc.tokens import Role, TokenFile
from kernel_foundry.wire.message import build, read_field
from tests.contract.archive_entries import candidate_of, verdict_on
from tests.domain_values import run_spec
from tests.free_port import free_port

CONNECTIONS = {"archive": 4_000, "gateway": 1_000}
SLOW = 200
SHELL_LIMIT = 1024
"""Open files that a shell allows by default."""
ONCE = CallOptions(retry=RetryPolicy(attempts=1), quick_deadline_s=60.0)
METHOD = "/kernel_foundry.archive.v1.ArchiveService/ListRuns"

_DATA, _HEADERS, _SETTINGS = 0, 1, 4
_END_HEADERS = 4


@dataclass(frozen=True)
class Served:
    """A service in a process of its own, as it is started from a shell."""

    host: str
    port: int
    pid: int
    tokens_path: Path

    @property
    def tokens(self) -> TokenFile:
        return TokenFile(self.tokens_path)

    @property
    def target(self) -> str:
        return f"{self.host}:{self.port}"

    def open_files(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    def memory_bytes(self) -> int:
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * resource.getpagesize()


@contextlib.contextmanager
def _process(module: str, tokens: Path, *options: str) -> Iterator[Served]:
    """A module of ours that serves, with those tokens."""
    port = free_port()
    at = f"127.0.0.1:{port}"
    service = (sys.executable, "-m", module, "--listen", at, "--tokens", str(tokens))
    shell = ("sh", "-c", f'ulimit -Sn {SHELL_LIMIT}; exec "$@"', "sh")
    with subprocess.Popen((*shell, *service, *options), stderr=subprocess.DEVNULL) as process:
        try:
            asyncio.run(wait_until_serving(at, timeout_s=280))
            yield Served("127.0.0.1", port, process.pid, tokens)
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def archive_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    tokens = folder / "tokens.json"
    TokenFile(tokens).create("nobody", Role.READ, 1)
    with _process("archive_svc", tokens, "--store", f"sqlite:///{folder}/runs.db") as served:
        yield served


@pytest.fixture(scope="module", params=["archive", "gateway"])
def served(request: pytest.FixtureRequest, archive_process: Served) -> Iterator[Served]:
    if request.param == "archive":
        yield archive_process
        return
    behind = ("--archive", archive_process.target)
    with _process("kernel_foundry.rpc.gateway", archive_process.tokens_path, *behind) as served:
        yield served


@pytest.fixture
def many_files(request: pytest.FixtureRequest, served: Served) -> Any:
    """As many open files as this user may have; gives how many connections that makes."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    wanted = CONNECTIONS[request.node.callspec.params["served"]]
    yield wanted if before[1] == resource.RLIM_INFINITY else min(wanted, before[1] - 1000)
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


async def _honest(served: Served, patch: pytest.MonkeyPatch, token: str) -> RemoteArchive:
    with patch.context() as inner:
        inner.setenv("KERNEL_FOUNDRY_TOKEN", token)
        return RemoteArchive(served.target, ONCE)


def _frame(kind: int, payload: bytes, *, flags: int = 0, stream: int = 0) -> bytes:
    return (
        struct.pack(">I", len(payload))[1:]
        + bytes((kind, flags))
        + struct.pack(">I", stream)
        + payload
    )


def _headers(*fields: tuple[str, str]) -> bytes:
    """Literal fields that are never indexed, without Huffman's code."""
    packed = b""
    for name, value in fields:
        assert max(len(name), len(value)) < 127  # longer ones have another prefix
        packed += (
            b"\x10" + bytes((len(name),)) + name.encode() + bytes((len(value),)) + value.encode()
        )
    return packed


def _slow_call(token: str) -> bytes:
    """The begin of a call: a message of a kilobyte is announced, and one byte of it is sent."""
    fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", METHOD),
        (":authority", "localhost"),
        ("te", "trailers"),
        ("content-type", "application/grpc"),
    ]
    if token:
        fields.append(("authorization", f"Bearer {token}"))
    message = b"\x00" + struct.pack(">I", 1024) + b"\x0a"
    return (
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        + _frame(_SETTINGS, b"")
        + _frame(_HEADERS, _headers(*fields), flags=_END_HEADERS, stream=1)
        + _frame(_DATA, message, stream=1)
    )


async def _close(writers: list[asyncio.StreamWriter]) -> None:
    for writer in writers:
        writer.close()
    for writer in writers:
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


@pytest.mark.slow
async def test_thousands_of_connections_shut_nobody_out(
    served: Served, many_files: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Silent ones and ones that begin to speak, where a shell allows 1024 files; all are let go."""
    archive = await _honest(served, monkeypatch, served.tokens.create("ada", Role.RUN, 1))
    assert await archive.list_runs() is not None
    before = served.open_files()
    writers: list[asyncio.StreamWriter] = []
    for number in range(many_files):
        _, writer = await asyncio.open_connection(served.host, served.port)
        writers.append(writer)
        if number % 2:
            writer.write(b"PRI * HTTP/2.0\r\n")
        if number % 500 == 0:
            assert await archive.list_runs() is not None
    stranger = await _honest(served, monkeypatch, served.tokens.create("bob", Role.READ, 1))
    assert await stranger.list_runs() is not None  # a new connection is taken as well
    assert served.memory_bytes() < 1 << 29
    await _close(writers)
    async with asyncio.timeout(280):
        while served.open_files() > before + 16:
            assert await archive.list_runs() is not None
            await asyncio.sleep(0.1)
    await stranger.close()
    await archive.close()


async def test_calls_that_never_end_hold_nobody_up(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a token and without: a message of which a byte comes, now and then."""
    token = served.tokens.create("ada", Role.RUN, 1)
    archive = await _honest(served, monkeypatch, token)
    before = served.open_files()
    writers = []
    for number in range(SLOW):
        _, writer = await asyncio.open_connection(served.host, served.port)
        writer.write(_slow_call(token if number % 2 else ""))
        writers.append(writer)
    for _ in range(20):
        for writer in writers:
            with contextlib.suppress(ConnectionError):
                writer.write(_frame(_DATA, b"\x00", stream=1))
        assert await archive.list_runs() is not None
    assert served.open_files() >= before + SLOW // 2  # they were not cut off for their bytes
    await _close(writers)
    await archive.close()


async def test_a_call_that_is_sent_again_changes_nothing(served: Served) -> None:
    """Whoever captured it has its bytes and its token; another connection brings them."""
    name = f"captured-{served.port}"
    token = served.tokens.create("ada", Role.RUN, 1)
    spec, candidate = run_spec(name), candidate_of("a")
    verdict = await verdict_on(spec.task, candidate)
    created = build(pb2.CreateRunRequest, spec=spec).SerializeToString()
    added = build(
        pb2.AddEvaluationRequest, run=name, candidate=candidate, evaluation=verdict, request_id="1"
    ).SerializeToString()

    async def send(method: str, captured: bytes) -> bytes:
        async with grpc.aio.insecure_channel(served.target) as channel:
            call: Any = channel.unary_unary(f"{METHOD.rpartition('/')[0]}/{method}")
            answer = await call(captured, metadata=(("authorization", f"Bearer {token}"),))
            assert isinstance(answer, bytes)
            return answer

    run = await send("CreateRun", created)
    assert await send("CreateRun", created) == run
    await send("AddEvaluation", added)
    await send("CreateRun", created)
    again = pb2.AddEvaluationResponse.FromString(await send("AddEvaluation", added))
    assert read_field(AddResult, again, "result").status is AddStatus.NOT_ADDED
    asked = build(pb2.GetStatsRequest, run=name).SerializeToString()
    stats = pb2.GetStatsResponse.FromString(await send("GetStats", asked))
    assert stats.stats.evaluation_count == 1


async def test_floods_of_refused_calls_harm_nobody(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Expired and copied tokens, too low a role, and messages beyond any bound."""
    expired = served.tokens.create("old", Role.ADMIN, 0)
    reader = served.tokens.create("eve", Role.READ, 1)
    token = served.tokens.create("ada", Role.RUN, 1)
    stolen = served.tokens.create("ada", Role.RUN, 1)
    archive = await _honest(served, monkeypatch, token)
    thief = await _honest(served, monkeypatch, stolen)
    await thief.list_runs()
    served.tokens.revoke(stolen.split("_")[1])  # what was copied ends with its revocation

    async def refused(text: str, call: Any) -> type[KernelFoundryError]:
        client = await _honest(served, monkeypatch, text)
        with pytest.raises(KernelFoundryError) as caught:
            await call(client)
        await client.close()
        return type(caught.value)

    kinds = await asyncio.gather(
        *(refused(expired, lambda c: c.list_runs()) for _ in range(50)),
        *(refused(stolen, lambda c: c.list_runs()) for _ in range(50)),
        *(refused(reader, lambda c: c.delete_run("any")) for _ in range(50)),
        *(archive.list_runs() for _ in range(50)),
    )
    assert kinds[:150] == [UnauthenticatedError] * 100 + [PermissionDeniedError] * 50
    with pytest.raises(UnauthenticatedError):
        await thief.list_runs()
    async with grpc.aio.insecure_channel(served.target) as channel:
        large: Any = channel.unary_unary(METHOD)
        for presented, code, size in (
            (token, grpc.StatusCode.RESOURCE_EXHAUSTED, MESSAGE_LIMIT_BYTES + 1),
            ("", grpc.StatusCode.UNAUTHENTICATED, 1 << 20),
        ):
            shown = (("authorization", f"Bearer {presented}"),) if presented else ()
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await large(b"\0" * size, metadata=shown, timeout=60)
            assert caught.value.code() is code
    assert await archive.list_runs() is not None
    await thief.close()
    await archive.close()
