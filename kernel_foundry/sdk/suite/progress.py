"""What a suite says while it goes on; a terminal and plain lines listen to these."""

from collections.abc import Callable
from dataclasses import dataclass

from kernel_foundry.sdk.loop import progress as run_progress
from kernel_foundry.sdk.suite.entry import SuiteEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryEvent:
    """A run of the suite was begun, went on, or ended; its state says which."""

    entry: SuiteEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRunEvent:
    """Something happened in a run of the suite."""

    entry: SuiteEntry
    event: run_progress.Event


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitEvent:
    """A run is tried again after a while, for no fault of a candidate."""

    entry: SuiteEntry
    reason: str
    seconds: float
    """Until then."""


SuiteEvent = EntryEvent | SuiteRunEvent | WaitEvent
SuiteListener = Callable[[SuiteEvent], None]
