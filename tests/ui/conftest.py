"""A page over real stores, served by a thread, and a browser that looks at it."""

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from archive_svc.archive import LocalArchive
from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.sweep import SweepRequest
from kernel_foundry.sdk.loop.budget import Budget
from kernel_foundry.sdk.report.t4 import t4_results
from kernel_foundry.sdk.services import Targets
from kernel_foundry.testing.evaluator import FakeEvaluator
from kernel_foundry.ui.server import PageServer
from tests import hostile_records
from tests.domain_values import run_spec
from tests.evolution import evolution_of
from tests.sdk.suite import small_suite
from tests.ui.browser import Browser, browser, missing

EVALUATIONS = 300

SWEPT = KernelSource(
    language=Language.SYCL,
    device_code="// swept",
    plan='TUNE = {"BLOCK": [64, 128, 256], "VEC": [1, 2]}\n\n\ndef launch(out):\n    pass\n',
)


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a hostile run, "first", and one of 300 evaluations, "recorded"."""
    folder = tmp_path_factory.mktemp("page")
    hostile_records.fill(folder)
    with_archive(folder, _search)
    asyncio.run(_suite(folder))
    landscape = folder / "sweeps" / "recorded" / f"{SWEPT.digest[:12]}.json"
    landscape.parent.mkdir(parents=True)
    landscape.write_text(json.dumps(asyncio.run(_sweep())))
    return folder


def with_archive(folder: Path, work: Callable[[LocalArchive], Coroutine[Any, Any, None]]) -> None:
    """Do `work` on the store of a data folder."""

    async def on_archive() -> None:
        archive = LocalArchive(f"sqlite:///{folder / 'runs.db'}")
        await work(archive)
        await archive.close()

    asyncio.run(on_archive())


async def _search(archive: LocalArchive) -> None:
    run = await archive.create_run(run_spec("recorded", seed=5, strategy="gradient"))
    await evolution_of(run, archive, Budget(evaluations=EVALUATIONS)).run()


async def _suite(folder: Path) -> None:
    services = small_suite.services_in(folder)
    await small_suite.work(folder, small_suite.plan_of(3), services)
    await services.archive.close()


async def _sweep() -> dict[str, Any]:
    task = run_spec().task
    request = SweepRequest(task=task, device="", source=SWEPT)
    return t4_results([result async for result in FakeEvaluator().sweep(request)])


@pytest.fixture(scope="session")
def address(data: Path) -> Iterator[str]:
    """What `kfoundry ui` prints."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERNEL_FOUNDRY_DATA_DIR", str(data))
        with served(Targets(store=f"sqlite:///{data / 'runs.db'}")) as url:
            yield url


@contextmanager
def served(targets: Targets) -> Iterator[str]:
    started = threading.Event()
    found: dict[str, Any] = {}

    async def serve() -> None:
        async with PageServer(targets) as server:
            found.update(address=server.address, loop=asyncio.get_running_loop())
            found["stop"] = asyncio.Event()
            started.set()
            await found["stop"].wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert started.wait(60)
    try:
        yield found["address"]
    finally:
        found["loop"].call_soon_threadsafe(found["stop"].set)
        thread.join()


@pytest.fixture(scope="session")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    reason = missing()
    if reason:
        pytest.skip(reason)
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened
