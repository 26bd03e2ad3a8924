"""The evidence record of a candidate of a stored run."""

from collections.abc import Iterator

from kernel_foundry.domain.archive import ArchivedEvaluation, Run
from kernel_foundry.errors import EliteNotFoundError, InvalidArgumentError
from kernel_foundry.evidence.record import EvidenceRecord, record_of
from kernel_foundry.sdk.client import Foundry


def record_of_run(foundry: Foundry, run: str = "", candidate: str = "") -> EvidenceRecord:
    """Return the record of a run's winner, or of the newest verdict on one of its candidates.

    Args:
        foundry: Where the run is stored.
        run: Its name; "" is the newest.
        candidate: Digest of a candidate, or how it begins; "" is the winner.

    Raises:
        RunNotFoundError: there is no such run.
        EliteNotFoundError: nothing of it passed, or no candidate of that digest.
        InvalidArgumentError: nobody signed for it, or several candidates begin so.
    """
    found = foundry.ask_archive(lambda a: a.get_run(run))
    if not candidate:
        elite = foundry.best(found.spec.name)
        return record_of(found.spec.task, elite.candidate.source, elite.evaluation)
    newest = {
        archived.candidate.digest: archived
        for archived in _archived(foundry, found)
        if archived.candidate.digest.startswith(candidate) and archived.evaluation.passed
    }
    if not newest:
        raise EliteNotFoundError(
            f"run {found.spec.name} has no candidate {candidate} that passed",
            run=found.spec.name,
            candidate=candidate,
        )
    if len(newest) > 1:
        raise InvalidArgumentError(
            f"{len(newest)} candidates of run {found.spec.name} that passed begin with {candidate}",
            field="candidate",
        )
    (archived,) = newest.values()
    return record_of(found.spec.task, archived.candidate.source, archived.evaluation)


def _archived(foundry: Foundry, run: Run) -> Iterator[ArchivedEvaluation]:
    name, after = run.spec.name, 0
    while page := foundry.ask_archive(lambda a, n=after: a.evaluations(name, after=n, limit=100)):  # type: ignore[misc]
        yield from page
        after = page[-1].sequence
