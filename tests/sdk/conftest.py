"""A store with a run in it, made by the loop on fakes."""

import asyncio
from pathlib import Path

import pytest

from archive_svc.archive import LocalArchive
from kernel_foundry.domain.task import Task, Workload
from kernel_foundry.sdk.loop.budget import Budget
from tests.domain_values import run_spec
from tests.evolution import evolution_of

SPEC = run_spec(
    "shown",
    task=Task(
        name="<b>odd</b> & name",
        reference="class Model: ...\n",
        workloads=(Workload(name="default"),),
    ),
    seed=5,
)


@pytest.fixture
def store(tmp_path: Path) -> str:
    """URL of a store that holds the run of `SPEC`."""
    url = f"sqlite:///{tmp_path / 'runs.db'}"

    async def fill() -> None:
        archive = LocalArchive(url)
        run = await archive.create_run(SPEC)
        await evolution_of(run, archive, Budget(evaluations=12)).run()
        await archive.close()

    asyncio.run(fill())
    return url
