"""Which exchanges of a run answer which selection."""

from typing import Final

from kernel_foundry.domain.exchange import Exchange
from kernel_foundry.ports import Generator

_PAGE: Final = 20
"""Exchanges in memory at once: a prompt may be long."""


class ExchangeIndex:
    """Finds the exchanges of a selection; reads each exchange once to know it.

    Args:
        run: Name of the run.
    """

    def __init__(self, run: str) -> None:
        self._run = run
        self._sequences: dict[int, list[int]] = {}
        self._last = 0

    async def of_selection(self, generator: Generator, selection: int) -> tuple[Exchange, ...]:
        """Return the exchanges that answer a selection, in order."""
        while page := await generator.exchanges(self._run, after=self._last, limit=_PAGE):
            for one in page:
                if one.selection is not None:
                    self._sequences.setdefault(one.selection, []).append(one.sequence)
            self._last = page[-1].sequence
        found: list[Exchange] = []
        for sequence in self._sequences.get(selection, []):
            found += await generator.exchanges(self._run, after=sequence - 1, limit=1)
        return tuple(found)
