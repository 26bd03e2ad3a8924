"""What an open run did between two evaluations, as text: selections made and selections dropped.

What a selection asks for depends on the order of selections, drops and additions, and the order of
the first two is known to the process alone that answers them. So each evaluation is stored with the
journal since the last one, and a run can be made again. "@0 s0 s1 d0": a process that opened the
run when it was empty made selections 0 and 1 and dropped 0. "@17 s32" behind it: another process,
or the same one anew, opened the run at 17 evaluations. "s33=fitness": made by another strategy
than the run's. "k2": from here on the run's steering events up to 2 are in force.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

MOST_EVENTS: Final = 4096
"""Between two evaluations; longer journals are truncated, and such a run cannot be replayed."""

_TOO_LONG: Final = "?"
_FORM: Final = re.compile(r"@\d{1,10}(?: [sdk]\d{1,10}(?:=[a-z_-]{1,40})?)*(?: \?)?")


class JournalAct(StrEnum):
    """What was done, by the letter that stands for it."""

    MADE = "s"
    DROPPED = "d"
    STEERED = "k"


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEvent:
    """A selection made or dropped, or steering taken up."""

    act: JournalAct
    number: int
    """Of the selection, or of the last steering event in force."""
    strategy: str = ""
    """Of a selection that was made by another strategy than the run's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEntry:
    """What happened before one evaluation was added."""

    opened_at: int
    """Evaluations in it when the process opened the run."""
    events: tuple[JournalEvent, ...]
    """In order."""
    is_whole: bool
    """False where there was more than a journal holds."""


class Journal:
    """The journal of one open run since its last evaluation.

    Args:
        opened_at: Evaluations in the run when it was opened.
    """

    def __init__(self, opened_at: int) -> None:
        self._opening = f"@{opened_at}"
        self._events: list[str] = []

    @property
    def text(self) -> str:
        """What to store with the next evaluation."""
        return " ".join((self._opening, *self._events))

    def made(self, selection: int, strategy: str = "") -> None:
        """Note that a selection was made, by another strategy than the run's where one is named."""
        made = f"{JournalAct.MADE}{selection}"
        self._note(f"{made}={strategy}" if strategy else made)

    def dropped(self, selection: int) -> None:
        """Note that a selection was dropped."""
        self._note(f"{JournalAct.DROPPED}{selection}")

    def steered(self, sequence: int) -> None:
        """Note that the steering events up to `sequence` are in force."""
        self._note(f"{JournalAct.STEERED}{sequence}")

    def strike(self, stored: str) -> None:
        """Forget what `stored` has: it is in the store, with an evaluation."""
        opening, *events = stored.split(" ")
        # Another process's events are none of these.
        if opening == self._opening and self._events[: len(events)] == events:
            del self._events[: len(events)]

    def _note(self, event: str) -> None:
        if len(self._events) < MOST_EVENTS:
            self._events.append(event)
        else:
            self._events[-1] = _TOO_LONG


def is_journal(text: str) -> bool:
    """Return whether `text` is a journal, or "": not known."""
    return not text or _FORM.fullmatch(text) is not None


def read_journal(text: str) -> JournalEntry:
    """Return what a journal says; it is one (`is_journal`) and not empty."""
    opening, *events = text.split(" ")
    is_whole = _TOO_LONG not in events
    return JournalEntry(
        opened_at=int(opening[1:]),
        events=tuple(_event(text) for text in events if text != _TOO_LONG),
        is_whole=is_whole,
    )


def _event(text: str) -> JournalEvent:
    number, _, strategy = text[1:].partition("=")
    return JournalEvent(act=JournalAct(text[0]), number=int(number), strategy=strategy)
