"""One evaluated candidate of a store, by its number in a run or by its digest."""

import re
from typing import Final

from kernel_foundry.domain.archive import ArchivedEvaluation
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.ports import Archive
from kernel_foundry.sdk.archive_pages import all_evaluations, all_runs

_NUMBER: Final = re.compile(r"[1-9][0-9]{0,6}")
_DIGEST: Final = re.compile(r"[0-9a-f]{4,64}")


async def find_candidate(archive: Archive, named: str, run: str = "") -> ArchivedEvaluation:
    """Return the newest run's newest evaluation of a candidate, whether it passed or not.

    Args:
        archive: Where to look.
        named: An evaluation's number in `run`, of at most seven digits; or the candidate's digest
            or how it begins, which is looked for in all runs.
        run: Whose number it is; "" is the newest.

    Raises:
        InvalidArgumentError: it is neither, there is none, or several candidates begin so.
        RunNotFoundError: there is no such run.
    """
    if _NUMBER.fullmatch(named):
        return await _numbered(archive, int(named), run)
    if not _DIGEST.fullmatch(named):
        raise InvalidArgumentError(
            f"{named!r}: expected the number of an evaluation, or a digest or its first four or "
            "more of 0-9 and a-f",
            field="candidate",
        )
    found: dict[str, ArchivedEvaluation] = {}
    async for one in all_runs(archive):
        of_run = {
            archived.candidate.digest: archived
            async for archived in all_evaluations(archive, one.spec.name)
            if archived.candidate.digest.startswith(named)
        }
        found = of_run | found
    if not found:
        raise InvalidArgumentError(
            f"no candidate of the store begins with {named}; `runs watch` shows a run's",
            field="candidate",
        )
    if len(found) > 1:
        raise InvalidArgumentError(
            f"{len(found)} candidates begin with {named}, such as "
            f"{', '.join(sorted(found)[:3])}: give more of its digest",
            field="candidate",
        )
    return found.popitem()[1]


async def _numbered(archive: Archive, number: int, run: str) -> ArchivedEvaluation:
    name = (await archive.get_run(run)).spec.name
    page = await archive.evaluations(name, after=number - 1, limit=1)
    if not page:
        raise InvalidArgumentError(
            f"run {name} has no evaluation {number}; `runs show` says how many there are",
            field="candidate",
        )
    return page[0]
