"""Replays a run of a store: makes it again in another one and compares both."""

from contextlib import AsyncExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from kernel_foundry.domain.archive import Run
from kernel_foundry.domain.exchange import Exchange
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.paths import store_url
from kernel_foundry.ports import Generator
from kernel_foundry.scratch import scratch_folder
from kernel_foundry.sdk.local import (
    Directory,
    Targets,
    export_run,
    recorded_replies,
    rerun_into,
)
from kernel_foundry.sdk.replay.difference import Difference, DifferenceError
from kernel_foundry.sdk.replay.driver import ReplayCounts, replay_run
from kernel_foundry.sdk.replay.equality import check_exports, check_report_data, check_spend


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOutcome:
    """How a replay ended."""

    run: str
    replayed: ReplayCounts | None = None
    """None where a difference ended it early."""
    elite_count: int = 0
    export_sha256: str = ""
    """Of both export files; empty where there is a difference."""
    difference: Difference | None = None
    """The first one; None: the runs are equal."""


async def replay(store: str, run: str, generator: Generator, *, into: str = "") -> ReplayOutcome:
    """Make a run again from what was recorded, and compare it with the recorded one.

    Args:
        store: URL of the run's store; "" for the default one.
        run: Its name; "" for the newest.
        generator: That has the run's exchanges.
        into: URL of the store for the repetition; "" for one that is removed at the end.

    Raises:
        RunNotFoundError: there is no such run.
        InvalidArgumentError: the run cannot be made again, or goes on meanwhile; it says why.
        AlreadyExistsError: `into` has a run of that name.
        StoreUnavailableError, CorruptArchiveError: as of the services.
    """
    source = store or store_url()
    before = await _run(source, run)
    with scratch_folder("replay") as temporary:
        folder = Path(temporary)
        target = into or f"sqlite:///{folder / 'replay.db'}"
        with closing(rerun_into(source, run, target)) as rerun:
            name = rerun.spec.name
            exchanges = await _exchanges(generator, name)
            try:
                replies = recorded_replies(rerun.spec.language, exchanges)
                replayed = replay_run(rerun, replies)
                check_spend((await generator.account(name)).spend, exchanges)
                elite_count = await _check_report_data(source, target, name)
                digest = _check_exports(source, target, name, folder)
            except DifferenceError as error:
                if not exchanges:
                    raise _unknown_here(name) from error
                more = await generator.exchanges(name, after=exchanges[-1].sequence, limit=1)
                if more or await _run(source, name) != before:
                    raise _goes_on(name) from error
                return ReplayOutcome(run=name, difference=error.difference)
    return ReplayOutcome(run=name, replayed=replayed, elite_count=elite_count, export_sha256=digest)


def _unknown_here(run: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"the generator has no exchange of run {run}: replay it where it was made, or name the "
        "generator that made it",
        field="run",
        run=run,
    )


def _goes_on(run: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"run {run} goes on while it is replayed: replay it once it has ended", field="run", run=run
    )


async def _run(source: str, name: str) -> Run:
    directory = Directory(Targets(store=source))
    try:
        return await (await directory.archive()).get_run(name)
    finally:
        await directory.close()


async def _exchanges(generator: Generator, run: str) -> tuple[Exchange, ...]:
    found: list[Exchange] = []
    while page := await generator.exchanges(run, after=found[-1].sequence if found else 0):
        found.extend(page)
    return tuple(found)


async def _check_report_data(source: str, target: str, run: str) -> int:
    async with AsyncExitStack() as stack:
        archives = []
        for url in (source, target):
            directory = Directory(Targets(store=url))
            stack.push_async_callback(directory.close)
            archives.append(await directory.archive())
        return await check_report_data(archives[0], archives[1], run)


def _check_exports(source: str, target: str, run: str, folder: Path) -> str:
    recorded, replayed = folder / "recorded.run.gz", folder / "replayed.run.gz"
    export_run(source, run, recorded)
    export_run(target, run, replayed)
    return check_exports(recorded, replayed)
