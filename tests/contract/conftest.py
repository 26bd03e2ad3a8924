"""Implementations under contract: as objects, and behind a server on a real UNIX socket.

One of each kind is reached by a gateway before its server instead. PostgreSQL's is an object: what
is on the wire does not depend on the database.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Protocol, TypeVar

import pytest

from archive_svc.archive import LocalArchive
from archive_svc.service import archive_service
from kernel_foundry.domain.archive import RunSpec
from kernel_foundry.domain.task import Task, Workload
from kernel_foundry.ports import Archive
from kernel_foundry.rpc.archive import RemoteArchive
from kernel_foundry.rpc.server import Service, running
from tests.domain_values import run_spec
from tests.rpc.gateway import by_gateway


class Closable(Protocol):
    """What all ports share."""

    async def close(self) -> None:
        """Release everything."""


P = TypeVar("P", bound=Closable)
SOCKET = " by a socket"


def each_way(*kinds: str) -> list[str]:
    """Name each kind of implementation twice: as an object, and behind a socket."""
    return [f"{kind}{suffix}" for kind in kinds for suffix in ("", SOCKET)]


@asynccontextmanager
async def reach(
    name: str,
    folder: Path,
    implementation: P,
    service: Callable[[P], Service],
    connect: Callable[[str], P],
) -> AsyncIterator[P]:
    """Yield what a test talks to: the implementation, or a client where the name says so."""
    if not name.endswith(SOCKET):
        try:
            yield implementation
        finally:
            await implementation.close()
        return
    async with running([service(implementation)], f"unix:{folder}/s", grace_s=1.0) as target:
        remote = connect(target)
        try:
            yield remote
        finally:
            await remote.close()


@pytest.fixture
def task() -> Task:
    """A task every evaluator can admit."""
    return Task(
        name="double",
        reference=(
            "import torch\n"
            "import torch.nn as nn\n\n\n"
            "class Model(nn.Module):\n"
            "    def forward(self, x):\n"
            "        return x * 2.0 + 1.0\n\n\n"
            "N = 64\n\n\n"
            "def get_inputs():\n"
            "    return [torch.rand(4, N)]\n\n\n"
            "def get_init_inputs():\n"
            "    return []\n"
        ),
        workloads=(Workload(name="default"),),
    )


@pytest.fixture(params=[*each_way("sqlite"), "postgresql", "gateway"])
async def archive(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Archive]:
    url = f"sqlite:///{tmp_path}/a.sqlite"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_server").new_store()
    implementation: Archive = LocalArchive(url)
    async with AsyncExitStack() as stack:
        if request.param == "gateway":
            implementation = await stack.enter_async_context(
                by_gateway(implementation, archive_service, RemoteArchive)
            )
        yield await stack.enter_async_context(
            reach(request.param, tmp_path, implementation, archive_service, RemoteArchive)
        )


@pytest.fixture
def spec(task: Task) -> RunSpec:
    return run_spec("first", task=task, models=("recipes",), seed=7)
