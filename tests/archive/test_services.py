"""The archive as processes: several on one store, watchers of all of them, kills and restarts."""

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from kernel_foundry.domain.archive import RunEvent, RunSpec, RunState, Selection
from kernel_foundry.domain.candidate import Candidate, Operator
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.errors import KernelFoundryError, ShuttingDownError, StatusCode
from kernel_foundry.rpc.archive import RemoteArchive
from kernel_foundry.rpc.readiness import wait_until_serving
from tests.archive.postgres import PostgresServer

Make = Callable[..., tuple[Candidate, Evaluation]]


class ServiceProcess:
    """An archive service as a process of its own, on a UNIX socket."""

    def __init__(self, folder: Path, name: str, store_url: str) -> None:
        self._target = f"unix:{folder / name}"
        self._store_url = store_url
        self.process: subprocess.Popen[bytes] | None = None
        self.archive: RemoteArchive
        """A client, of the test that runs."""

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    async def connect(self) -> None:
        """Start it where it does not run."""
        if self.process is None or self.process.poll() is not None:
            await self.start()
        self.archive = RemoteArchive(self._target)

    async def start(self) -> None:
        self._launch()
        await wait_until_serving(self._target, timeout_s=280)

    def _launch(self) -> None:
        command = (sys.executable, "-m", "archive_svc", "--listen", self._target)
        self.process = subprocess.Popen(
            (*command, "--store", self._store_url), stderr=subprocess.DEVNULL
        )

    def terminate(self) -> None:
        assert self.process is not None
        self.process.terminate()

    def wait(self) -> int:
        assert self.process is not None
        return self.process.wait()

    def kill(self) -> None:
        """End it as a crash would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def processes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[ServiceProcess]]:
    """Two services on one store of each kind in turn; a test has a run of its own there."""
    folder = tmp_path_factory.mktemp("services")
    store_url = f"sqlite:///{folder / 'runs.db'}"
    if request.param == "postgresql":
        server: PostgresServer = request.getfixturevalue("postgres_server")
        store_url = server.new_store()
    both = [ServiceProcess(folder, name, store_url) for name in ("one", "two")]
    yield both
    for one in both:
        one.kill()


@pytest.fixture
async def services(processes: list[ServiceProcess]) -> AsyncIterator[list[ServiceProcess]]:
    async with AsyncExitStack() as at_end:
        for service in processes:
            await service.connect()
            at_end.push_async_callback(service.archive.close)
        yield processes


_NUMBERS = count()


@pytest.fixture
def spec(spec: RunSpec) -> RunSpec:
    return replace(spec, name=f"run-{next(_NUMBERS)}")


def _assignment(selection: Selection) -> tuple[object, ...]:
    parent = selection.parent.candidate.digest if selection.parent else None
    inspirations = tuple(elite.candidate.digest for elite in selection.inspirations)
    return (selection.island, selection.operator, parent, inspirations, selection.target)


async def _add(
    archive: RemoteArchive, run: str, make: Make, number: int, **verdict: object
) -> None:
    candidate, evaluation = make(str(number), **verdict)
    await archive.add(run, candidate, evaluation, request_id=str(number))


async def test_two_services_never_give_out_the_same_selection(
    services: list[ServiceProcess], spec: RunSpec, make: Make
) -> None:
    one, two = (service.archive for service in services)
    await one.create_run(replace(spec, strategy="gradient"))
    for number in range(12):
        cell = (number % 4, number // 4, 0)
        await _add(
            (one, two)[number % 2], spec.name, make, number, median_ns=900.0 - number, cell=cell
        )
    selections = await asyncio.gather(
        *((one, two)[number % 2].select(spec.name) for number in range(32))
    )
    assert len({s.sequence for s in selections}) == 32
    for ours in (selections[::2], selections[1::2]):  # in flight at one service
        asked = Counter(_assignment(s) for s in ours if s.operator is not Operator.SEED)
        assert set(asked.values()) == {1}


async def test_services_see_what_the_other_was_told(
    services: list[ServiceProcess], spec: RunSpec, make: Make
) -> None:
    one, two = (service.archive for service in services)
    await one.create_run(spec)
    for number in range(10):
        cell = (number % 4, number % 3, 0)
        await _add(
            (one, two)[number % 2], spec.name, make, number, median_ns=900.0 - number, cell=cell
        )
        assert await one.elites(spec.name) == await two.elites(spec.name)
        assert await one.gradient(spec.name) == await two.gradient(spec.name)
    assert await one.stats(spec.name) == await two.stats(spec.name)
    assert [t.sequence for t in await two.evaluations(spec.name)] == list(range(1, 11))


async def test_watcher_sees_what_another_service_adds(
    services: list[ServiceProcess], spec: RunSpec, make: Make
) -> None:
    one, two = (service.archive for service in services)
    await one.create_run(spec)
    async with asyncio.timeout(280), aclosing(two.watch(spec.name)) as events:
        for number in range(1, 4):
            event, _ = await asyncio.gather(
                anext(events), _add(one, spec.name, make, number, median_ns=500.0)
            )
            assert event.sequence == number
        end, _ = await asyncio.gather(
            anext(events), one.finish_run(spec.name, RunState.INTERRUPTED)
        )
    assert end == RunEvent(sequence=3, state=RunState.INTERRUPTED)


async def test_cut_watcher_goes_on_where_it_was(
    services: list[ServiceProcess], spec: RunSpec, make: Make
) -> None:
    """SIGKILL of the service in mid-stream; nothing is missing and nothing comes twice."""
    one, two = (service.archive for service in services)
    await one.create_run(spec)
    seen: list[int] = []
    for number in range(30):
        await _add(one, spec.name, make, number, median_ns=900.0 - number)

    async def watch() -> None:
        async with asyncio.timeout(280), aclosing(two.watch(spec.name)) as events:
            async for event in events:
                seen.append(event.sequence)
                if len(seen) == 25:
                    services[1].kill()

    with pytest.raises(KernelFoundryError) as caught:
        await watch()
    assert caught.value.code is StatusCode.UNAVAILABLE
    await one.finish_run(spec.name, RunState.FINISHED)
    await services[1].start()
    async with asyncio.timeout(280), aclosing(two.watch(spec.name, after=seen[-1])) as events:
        rest = [event async for event in events]
    assert [*seen, *(e.sequence for e in rest if e.archived)] == list(range(1, 31))
    assert rest[-1].state is RunState.FINISHED


async def test_service_that_stops_does_not_wait_for_watchers(
    services: list[ServiceProcess], spec: RunSpec, make: Make
) -> None:
    one = services[0].archive
    await one.create_run(spec)
    await _add(one, spec.name, make, 1, median_ns=500.0)
    async with aclosing(one.watch(spec.name)) as events:
        await anext(events)  # it is served, and not on its way
        services[0].terminate()
        # One that is cut off after the seconds that calls are given ends with another error.
        with pytest.raises(ShuttingDownError):
            await anext(events)
    assert await asyncio.to_thread(services[0].wait) == 0


@asynccontextmanager
async def _reading_slowly(archive: RemoteArchive, run: str) -> AsyncIterator[None]:
    """Open a stream and read one event of it."""
    async with aclosing(archive.watch(run)) as events:
        assert (await anext(events)).sequence == 1
        yield


async def test_slow_and_leaving_watchers_hold_nothing(
    services: list[ServiceProcess], spec: RunSpec, make: Make
) -> None:
    """Twenty readers that stop reading cost pages, not runs; the service serves on."""
    one = services[0].archive
    await one.create_run(spec)
    log = "x" * 50_000
    for number in range(200):
        candidate, evaluation = make(str(number), median_ns=900.0)
        assert evaluation.compile is not None
        evaluation = replace(evaluation, compile=replace(evaluation.compile, log=log))
        await one.add(spec.name, candidate, evaluation, request_id=str(number))
    before_bytes = _resident_bytes(services[0].pid)
    async with AsyncExitStack() as readers:
        for _ in range(20):
            await readers.enter_async_context(_reading_slowly(one, spec.name))
        await asyncio.sleep(0.5)
        # All of it for each would be 200 MB; a page for each is 20 MB.
        assert _resident_bytes(services[0].pid) - before_bytes < 80 * 2**20
        await _add(one, spec.name, make, 1000, median_ns=800.0)
    assert (await one.stats(spec.name)).evaluation_count == 201


def _resident_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024
