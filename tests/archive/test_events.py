"""The event stream: read at the reader's pace, ended with it."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from archive_svc.archive import LocalArchive
from archive_svc.run.events import PAGE, Bell, Page, follow
from archive_svc.service import archive_service
from kernel_foundry.domain.archive import ArchivedEvaluation, RunEvent, RunSpec, RunState
from kernel_foundry.domain.candidate import Candidate
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.errors import TooManyWatchersError
from kernel_foundry.rpc.archive import RemoteArchive
from kernel_foundry.rpc.server import running

Make = Callable[..., tuple[Candidate, Evaluation]]


class _Source:
    def __init__(self, make: Make, count: int) -> None:
        candidate, evaluation = make("a", median_ns=500.0)
        self.archived = [
            ArchivedEvaluation(
                sequence=sequence,
                candidate=candidate,
                evaluation=evaluation,
                archived_unix_s=0.0,
                cost_usd=0.0,
            )
            for sequence in range(1, count + 1)
        ]
        self.state = RunState.FINISHED
        self.reads = 0

    async def read(self, after: int) -> Page:
        self.reads += 1
        archived = self.archived[after : after + PAGE]
        return Page(archived=archived, state=self.state, evaluation_count=len(self.archived))


async def test_pages_are_read_as_they_are_needed(make: Make) -> None:
    source = _Source(make, 3 * PAGE)
    async with aclosing(follow(source.read, Bell(), after=0)) as events:
        for _ in range(PAGE):
            await anext(events)
        assert source.reads == 1
        await anext(events)
        assert source.reads == 2
        rest = [event.sequence async for event in events]
    assert rest == [*range(PAGE + 2, 3 * PAGE + 1), 3 * PAGE]


async def test_a_ring_wakes_at_once_and_polling_finds_the_rest(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("archive_svc.run.events.POLL_S", 3600.0)
    source = _Source(make, 2)
    later, source.archived, source.state = source.archived, [], RunState.RUNNING
    bell = Bell()
    async with aclosing(follow(source.read, bell, after=0)) as events:
        first = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        source.archived = later[:1]
        bell.ring()
        assert await first == RunEvent(sequence=1, archived=later[0])
        monkeypatch.setattr("archive_svc.run.events.POLL_S", 0.01)
        second = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0)
        source.archived = later  # by another process, which rings no bell of ours
        assert (await second).sequence == 2


class _WatchedArchive(LocalArchive):
    """Tells when a stream was closed."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"sqlite:///{folder}/runs.db")
        self.closed = asyncio.Event()

    async def watch(self, run: str, *, after: int = 0) -> AsyncGenerator[RunEvent, None]:
        try:
            async for event in super().watch(run, after=after):
                yield event
        finally:
            self.closed.set()


async def test_a_client_that_leaves_ends_the_stream_in_the_service(
    tmp_path: Path, spec: RunSpec, make: Make
) -> None:
    archive = _WatchedArchive(tmp_path)
    await archive.create_run(spec)
    candidate, evaluation = make("a", median_ns=500.0)
    await archive.add("first", candidate, evaluation, request_id="1")
    async with running([archive_service(archive)], f"unix:{tmp_path / 's'}", grace_s=1.0) as target:
        remote = RemoteArchive(target)
        async with aclosing(remote.watch("first")) as events:
            await anext(events)
            assert not archive.closed.is_set()
        await asyncio.wait_for(archive.closed.wait(), 60)
        await remote.close()


async def test_streams_end_at_as_many_as_are_served(
    tmp_path: Path, spec: RunSpec, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each polls the store; one that was closed makes room."""
    monkeypatch.setattr("archive_svc.service._MOST_WATCHERS", 1)
    archive = _WatchedArchive(tmp_path)
    await archive.create_run(spec)
    await archive.add("first", *make("a", median_ns=500.0), request_id="1")
    async with running([archive_service(archive)], f"unix:{tmp_path / 's'}", grace_s=1.0) as target:
        remote = RemoteArchive(target)
        async with aclosing(remote.watch("first")) as events:
            await anext(events)
            with pytest.raises(TooManyWatchersError):
                await anext(remote.watch("first"))
        async with asyncio.timeout(60):
            while not await _is_served(remote):  # noqa: ASYNC110  the service tells nobody
                await asyncio.sleep(0.01)
        await remote.close()


async def _is_served(remote: RemoteArchive) -> bool:
    try:
        async with aclosing(remote.watch("first")) as events:
            await anext(events)
    except TooManyWatchersError:
        return False
    return True
