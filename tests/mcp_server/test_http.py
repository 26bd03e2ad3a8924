"""The server over HTTP: the SDK's client with the token, and nobody without."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.cli.conftest import CANDIDATE, environment_of
from tests.mcp_server.conftest import answer, refusal

TOKEN = "a-token-of-the-test"
OTHER = "another-token-of-it"

EMPTY = {"task": "relu.py", "candidate": ""}


@asynccontextmanager
async def _agent(address: str, token: str) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(address, http_client=http)) as agent,
    ):
        yield agent


async def _check_that_a_run_is_its_callers(address: str) -> None:
    """One evaluation is left to the one caller, and none to the other."""
    async with _agent(address, OTHER) as agent:
        given = {"action": "inject", "candidate": CANDIDATE}
        assert "no run" in await refusal(agent, "optimize_steer", run="nothing", **given)
        run = {"task": "relu.py", "device": "null:0", "run": "others"}
        await answer(agent, "optimize_start", evaluations=1, **run)  # which was given back
    async with _agent(address, TOKEN) as agent:
        asked = {"run": "others"}
        assert "another caller" in await refusal(agent, "optimize_cancel", **asked)
        for run in (asked, {"run": ""}):
            said = await refusal(agent, "optimize_steer", action="pause", **run)
            assert "another caller" in said
        assert "0 of 2 left" in await refusal(agent, "optimize_steer", **asked, **given)


@pytest.mark.slow
async def test_only_the_token_opens_the_server(agent_folder: Path, served: str) -> None:
    server = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "kernel_foundry.cli", "mcp", "--http", "0", "--evaluator", served),
        *("--evaluations", "2"),
        env={**environment_of(agent_folder), "KERNEL_FOUNDRY_MCP_TOKEN": f"{TOKEN} {OTHER}"},
        cwd=agent_folder,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert server.stdout is not None
        address = (await server.stdout.readline()).decode().strip()
        assert address.startswith("http://127.0.0.1:")
        assert TOKEN not in (await server.stdout.readline()).decode()

        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        allowed = {"Authorization": f"Bearer {TOKEN}"}
        async with httpx2.AsyncClient() as stranger:
            for headers in (
                {},
                {"Authorization": "Bearer"},
                {"Authorization": f"Bearer {TOKEN}x"},
            ):
                assert (await stranger.post(address, json=ping, headers=headers)).status_code == 401
            foreign = {**allowed, "Host": "evil.example"}
            assert (await stranger.post(address, json=ping, headers=foreign)).status_code == 421
            page = {**allowed, "Origin": "https://evil.example"}
            assert (await stranger.post(address, json=ping, headers=page)).status_code == 403

        async with _agent(address, TOKEN) as agent:
            found = await answer(agent, "devices")
            assert [device["id"] for device in found["devices"]] == ["null:0"]
            for _ in range(2):
                await answer(agent, "build", **EMPTY)
        # Whoever connects again has no new budget; another caller has its own.
        for token, is_left in ((TOKEN, False), (OTHER, True)):
            async with _agent(address, token) as agent:
                built = await agent.call_tool("build", EMPTY)
                assert built.is_error is not is_left
        await _check_that_a_run_is_its_callers(address)
    finally:
        server.terminate()
        assert await server.wait() == 0
