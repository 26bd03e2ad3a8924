"""Searches in parallel processes.

A search depends on its landscape, strategy and seed alone, so that the number of processes
changes no result.
"""

import multiprocessing
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass

from kernel_foundry.errors import ProcessLostError
from landscapes.landscape import Landscape
from landscapes.search import SearchResult, search
from landscapes.search_space import LandscapeEvaluator, SearchSpace


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Some seeds of every strategy on one landscape."""

    landscape: int
    """Position among the landscapes."""
    seeds: tuple[int, ...]
    strategies: tuple[str, ...]
    evaluations: int


Results = dict[tuple[str, int], SearchResult]
"""Results by (strategy, seed)."""


def search_all(
    batches: Sequence[Batch], landscapes: Sequence[Landscape], processes: int
) -> Iterator[tuple[Batch, Results]]:
    """Yield every batch with its results as they are done, in any order.

    Raises:
        ProcessLostError: a process was killed, by lack of memory for instance.
    """
    if processes == 1:
        spaces = [SearchSpace(landscape) for landscape in landscapes]
        for batch in batches:
            yield batch, _search(batch, spaces[batch.landscape])
        return
    # Fresh interpreters: a fork of a process with threads may hang.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        min(processes, len(batches)), context, initializer=_prepare, initargs=(tuple(landscapes),)
    ) as pool:
        futures = {pool.submit(_search_prepared, batch): batch for batch in batches}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool as error:
            raise ProcessLostError(
                "a process of the searches was killed; try fewer --processes if memory is short"
            ) from error
        finally:
            pool.shutdown(cancel_futures=True)


_spaces: list[SearchSpace] = []
"""Of a worker process: made once, not sent with every batch."""


def _prepare(landscapes: tuple[Landscape, ...]) -> None:
    # Ctrl-C reaches the parent, which ends its workers in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _spaces[:] = [SearchSpace(landscape) for landscape in landscapes]


def _search_prepared(batch: Batch) -> Results:
    return _search(batch, _spaces[batch.landscape])


def _search(batch: Batch, space: SearchSpace) -> Results:
    results = {}
    for seed in batch.seeds:
        evaluator = LandscapeEvaluator(space, seed)
        for strategy in batch.strategies:
            results[strategy, seed] = search(
                space, evaluator, strategy=strategy, seed=seed, evaluations=batch.evaluations
            )
    return results
