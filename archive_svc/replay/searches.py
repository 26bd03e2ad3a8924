"""Replayed searches in parallel processes.

A search depends on its landscape, strategy and seed alone, so that the number of processes
changes no result.
"""

import multiprocessing
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass

from archive_svc.replay.landscape import Landscape
from archive_svc.replay.replay_run import ReplayedRun, replay_run
from archive_svc.replay.world import ReplayedEvaluator, World
from kernel_foundry.errors import ProcessLostError


@dataclass(frozen=True, slots=True, kw_only=True)
class Searches:
    """A piece of work: some seeds of every strategy on one landscape."""

    landscape: int
    """Position among the landscapes."""
    seeds: tuple[int, ...]
    strategies: tuple[str, ...]
    evaluations: int


Runs = dict[tuple[str, int], ReplayedRun]
"""Runs by (strategy, seed)."""


def search_all(
    pieces: Sequence[Searches], landscapes: Sequence[Landscape], processes: int
) -> Iterator[tuple[Searches, Runs]]:
    """Yield every piece with its runs as they are done, in any order.

    Raises:
        ProcessLostError: a process was killed, by lack of memory for instance.
    """
    if processes == 1:
        worlds = [World(landscape) for landscape in landscapes]
        for piece in pieces:
            yield piece, _search(piece, worlds[piece.landscape])
        return
    # Fresh interpreters: a fork of a process with threads may hang.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        min(processes, len(pieces)), context, initializer=_prepare, initargs=(tuple(landscapes),)
    ) as pool:
        futures = {pool.submit(_search_prepared, piece): piece for piece in pieces}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool as error:
            raise ProcessLostError(
                "a process of the searches was killed; try fewer --processes if memory is short"
            ) from error
        finally:
            pool.shutdown(cancel_futures=True)


_worlds: list[World] = []
"""Of a worker process: made once, not sent with every piece."""


def _prepare(landscapes: tuple[Landscape, ...]) -> None:
    # Ctrl-C reaches the parent, which ends its workers in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _worlds[:] = [World(landscape) for landscape in landscapes]


def _search_prepared(piece: Searches) -> Runs:
    return _search(piece, _worlds[piece.landscape])


def _search(piece: Searches, world: World) -> Runs:
    runs = {}
    for seed in piece.seeds:
        evaluator = ReplayedEvaluator(world, seed)
        for strategy in piece.strategies:
            runs[strategy, seed] = replay_run(
                world, evaluator, strategy=strategy, seed=seed, evaluations=piece.evaluations
            )
    return runs
