"""A suite as its store has it: the plan and where each of its runs stands."""

from dataclasses import dataclass

from kernel_foundry.sdk.suite.entry import EntryState, SuiteEntry
from kernel_foundry.sdk.suite.plan import SuitePlan


@dataclass(slots=True, kw_only=True)
class Suite:
    """One suite."""

    id: int
    plan: SuitePlan
    entries: list[SuiteEntry]
    created_unix_s: float
    used_seconds: float = 0.0
    """Wall-clock seconds in which a process worked on it, up to the last change of an entry."""

    def count(self, state: EntryState) -> int:
        """Return how many runs stand so."""
        return sum(entry.state is state for entry in self.entries)

    def begin_again(self) -> None:
        """Take up runs again that were refused or failed.

        They keep device and budget: some of them are in the archive with these.
        """
        for entry in self.entries:
            if entry.state in (EntryState.REFUSED, EntryState.FAILED):
                entry.state = EntryState.BEGUN
                entry.progress.attempts, entry.progress.reason = 0, ""

    @property
    def has_ended(self) -> bool:
        """Whether every run has ended, in whichever way."""
        return all(entry.has_ended for entry in self.entries)

    @property
    def cost_usd(self) -> float:
        """What the runs that ended have cost."""
        return sum(entry.progress.cost_usd for entry in self.entries)
