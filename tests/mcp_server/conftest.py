"""A server of the command, spoken to by the SDK's own client."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from mcp import Client, StdioServerParameters

from tests.cli.conftest import environment_of


@asynccontextmanager
async def agent_of(folder: Path, evaluator: str, *options: str) -> AsyncIterator[Client]:
    """Start `kfoundry mcp` in `folder` and yield a client that is connected to it."""
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "kernel_foundry.cli", "mcp", *options],
        env={**environment_of(folder), "KERNEL_FOUNDRY_EVALUATOR": evaluator},
        cwd=folder,
    )
    async with Client(parameters) as client:
        yield client
