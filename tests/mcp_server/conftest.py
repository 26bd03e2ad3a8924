"""A server of the command, spoken to by the SDK's own client."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult

from tests.cli.conftest import CANDIDATE, TASK, environment_of


@pytest.fixture
def agent_folder(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    (root / "relu.py").write_text(TASK)
    (root / "relu.md").write_text(CANDIDATE)
    (tmp_path / "outside.py").write_text(TASK)
    (root / "link.py").symlink_to(tmp_path / "outside.py")
    (root / "sided.py").write_text(TASK)
    (tmp_path / "secret.yaml").write_text("tolerance: secret\n")
    (root / "sided.task.yaml").symlink_to(tmp_path / "secret.yaml")
    return root


@asynccontextmanager
async def agent_of(
    folder: Path, evaluator: str, *options: str, device_kinds: str = "null"
) -> AsyncIterator[Client]:
    """Start `kfoundry mcp` in `folder` and yield a client that is connected to it."""
    kinds = {"KERNEL_FOUNDRY_DEVICE_KINDS": device_kinds}
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "kernel_foundry.cli", "mcp", *options],
        env={**environment_of(folder), **kinds, "KERNEL_FOUNDRY_EVALUATOR": evaluator},
        cwd=folder,
    )
    async with Client(parameters) as client:
        yield client


async def answer(agent: Client, tool: str, **arguments: object) -> dict:
    """Return what a tool answers; it may not refuse."""
    return answer_of(await agent.call_tool(tool, arguments))


def answer_of(result: CallToolResult) -> dict[str, Any]:
    """Return what a result of a tool holds; it may be no refusal."""
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content


async def refusal(agent: Client, tool: str, **arguments: object) -> str:
    """Return why a tool refuses; it may not answer."""
    result = await agent.call_tool(tool, arguments)
    assert result.is_error, result.structured_content
    return result.content[0].text
