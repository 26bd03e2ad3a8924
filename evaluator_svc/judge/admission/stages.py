"""Where an admission's time goes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from kernel_foundry.domain.evaluation import StageTime


class Stages:
    """Wall times of named stages, added up."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the wall time of the block to a stage; one within it is not counted twice."""
        started, inner = time.perf_counter(), sum(self._seconds.values())
        try:
            yield
        finally:
            inner = sum(self._seconds.values()) - inner
            spent = time.perf_counter() - started - inner
            self._seconds[name] = self._seconds.get(name, 0.0) + spent

    def times(self) -> tuple[StageTime, ...]:
        """Return the stages in the order in which they began to end."""
        return tuple(StageTime(stage=n, wall_ms=1e3 * s) for n, s in self._seconds.items())
