"""Every answer says which version gave it, and clients warn of another one."""

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from click.testing import CliRunner, Result

from archive_svc.archive import LocalArchive
from archive_svc.service import archive_service
from kernel_foundry.archive.v1 import archive_service_pb2 as pb2
from kernel_foundry.archive.v1.archive_service_pb2_grpc import ArchiveServiceStub
from kernel_foundry.cli import health
from kernel_foundry.rpc import interceptor
from kernel_foundry.rpc.archive import RemoteArchive
from kernel_foundry.rpc.security import ServerSecurity
from kernel_foundry.rpc.server import running
from kernel_foundry.rpc.server_version import (
    VERSION_KEY,
    difference,
    own_version,
    told_version,
)
from tests.rpc.authority import Authority


@pytest.fixture
async def target(tmp_path: Path) -> AsyncIterator[str]:
    archive = LocalArchive(f"sqlite:///{tmp_path}/runs.db")
    async with running([archive_service(archive)], f"unix:{tmp_path}/s") as target:
        yield target


async def test_answers_and_errors_carry_the_version(target: str) -> None:
    async with grpc.aio.insecure_channel(target) as channel:
        stub = ArchiveServiceStub(channel)
        call = stub.ListRuns(pb2.ListRunsRequest())
        await call
        assert told_version(await call.trailing_metadata()) == own_version() != ""
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stub.DeleteRun(pb2.DeleteRunRequest())
        assert told_version(refused.value.trailing_metadata()) == own_version()


async def test_a_client_warns_once_of_another_version(
    target: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(interceptor, "version_header", lambda: (VERSION_KEY, "99.1.0"))
    client = RemoteArchive(target)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            await client.list_runs()
    await client.close()
    assert [r.getMessage() for r in caplog.records if "99.1.0" in r.getMessage()] == [
        f"{target}: {difference('99.1.0')}"
    ]


def test_patches_and_what_is_not_said_are_no_difference() -> None:
    major, minor, *_ = own_version().split(".")
    for told in ("", own_version(), f"{major}.{minor}.999"):
        assert difference(told) == ""
    for told in (f"{major}.{int(minor) + 1}.0", f"{int(major) + 1}.{minor}.0", "x"):
        assert f"version {told}" in difference(told)


async def _health(*arguments: str) -> Result:
    return await asyncio.to_thread(
        CliRunner().invoke, health.command, list(arguments), standalone_mode=False
    )


async def test_health_is_told_by_exit_code(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over TLS the service's own certificate is enough to know it by, under a name that it has."""
    up = await _health(target)
    assert up.return_value == 0
    assert up.output == f"{target}: SERVING, version {own_version()}\n"
    down = await _health(f"unix:{tmp_path}/nobody", "--timeout", "0.5")
    assert down.return_value == 1
    certificate, key = Authority.make(tmp_path / "own").issue("service")
    monkeypatch.setenv("KERNEL_FOUNDRY_TLS_CA", str(certificate))
    security = ServerSecurity(certificate=certificate, key=key)
    async with running([], "localhost:0", security=security) as secured:
        assert (await _health(secured, "--tls-name", "127.0.0.1")).return_value == 0
        assert (await _health(secured, "--tls-name", "other")).return_value == 1
