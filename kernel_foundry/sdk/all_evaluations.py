"""All evaluations of a run, whatever an answer may hold."""

from collections.abc import AsyncIterator
from typing import Final

from kernel_foundry.domain.archive import ArchivedEvaluation
from kernel_foundry.ports import Archive

_PAGE: Final = 100


async def all_evaluations(archive: Archive, run: str) -> AsyncIterator[ArchivedEvaluation]:
    """Yield the evaluations of a run in order, page by page.

    Raises:
        RunNotFoundError: no such run.
    """
    after = 0
    while page := await archive.evaluations(run, after=after, limit=_PAGE):
        for archived in page:
            yield archived
        after = page[-1].sequence
