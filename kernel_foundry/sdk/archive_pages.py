"""Every run of an archive, and every evaluation of a run, read a page at a time."""

from collections.abc import AsyncIterator
from typing import Final

from kernel_foundry.domain.archive import ArchivedEvaluation, Run
from kernel_foundry.ports import Archive

_PAGE: Final = 100


async def all_runs(archive: Archive, *, mine: bool = False) -> AsyncIterator[Run]:
    """Yield the runs, newest first, or only the caller's; raises as `Archive.list_runs`."""
    page_token = ""
    while True:
        page = await archive.list_runs(limit=_PAGE, page_token=page_token, mine=mine)
        for run in page:
            yield run
        if len(page) < _PAGE:
            return
        page_token = page[-1].spec.name


async def all_evaluations(archive: Archive, run: str) -> AsyncIterator[ArchivedEvaluation]:
    """Yield the evaluations of a run in order.

    Raises:
        RunNotFoundError: no such run.
    """
    after = 0
    while page := await archive.evaluations(run, after=after, limit=_PAGE):
        for archived in page:
            yield archived
        after = page[-1].sequence
