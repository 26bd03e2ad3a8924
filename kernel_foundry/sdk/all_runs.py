"""Every run of an archive, read a page at a time."""

from collections.abc import AsyncIterator
from typing import Final

from kernel_foundry.domain.archive import Run
from kernel_foundry.ports import Archive

_PAGE: Final = 100


async def all_runs(archive: Archive) -> AsyncIterator[Run]:
    """Yield the runs, newest first; raises as `Archive.list_runs`."""
    page_token = ""
    while True:
        page = await archive.list_runs(limit=_PAGE, page_token=page_token)
        for run in page:
            yield run
        if len(page) < _PAGE:
            return
        page_token = page[-1].spec.name
