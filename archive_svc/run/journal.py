"""The journal of an open run: the selections that were made and dropped between two evaluations.

A selection depends on the order of selections, drops and additions, and only the process that
answers the first two knows their order. So each evaluation is stored with the journal since the
last one, and the run can be replayed. The text of a journal, by example:

* "@0 s0 s1 d0": the process opened the run when it had 0 evaluations, made the selections 0 and 1,
  and dropped 0.
* "@17 s32" in a later evaluation: another process, or the same one anew, opened the run when it had
  17 evaluations.
* "s33=fitness": the selection was made by another strategy than the run's.
* "k2": from here on the run's steering events up to 2 are in force.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

MOST_EVENTS: Final = 4096
"""Most events between two evaluations; a longer journal is truncated, and its run cannot be
replayed."""

_TOO_LONG: Final = "?"
_FORM: Final = re.compile(r"@\d{1,10}(?: [sdk]\d{1,10}(?:=[a-z_-]{1,40})?)*(?: \?)?")


class JournalAct(StrEnum):
    """The kind of an event, with the letter for it."""

    MADE = "s"
    DROPPED = "d"
    STEERED = "k"


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEvent:
    """A selection made or dropped, or steering taken up."""

    act: JournalAct
    number: int
    """Number of the selection, or of the last steering event in force."""
    strategy: str = ""
    """The strategy that made the selection; "" for the run's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEntry:
    """The events before one evaluation was added."""

    opened_at: int
    """Evaluations in the run when the process opened it."""
    events: tuple[JournalEvent, ...]
    """In order."""
    is_whole: bool
    """False if the journal was truncated."""


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
        """The journal's text, to be stored with the next evaluation."""
        return " ".join((self._opening, *self._events))

    def made(self, selection: int, strategy: str = "") -> None:
        """Note that a selection was made; `strategy` names it if it is not the run's own."""
        made = f"{JournalAct.MADE}{selection}"
        self._note(f"{made}={strategy}" if strategy else made)

    def dropped(self, selection: int) -> None:
        """Note that a selection was dropped."""
        self._note(f"{JournalAct.DROPPED}{selection}")

    def steered(self, sequence: int) -> None:
        """Note that the steering events up to `sequence` are in force."""
        self._note(f"{JournalAct.STEERED}{sequence}")

    def forget(self, stored: str) -> None:
        """Forget the events of `stored`, a journal that was stored with an evaluation."""
        opening, *events = stored.split(" ")
        # A journal with another beginning was written by another process.
        if opening == self._opening and self._events[: len(events)] == events:
            del self._events[: len(events)]

    def _note(self, event: str) -> None:
        if len(self._events) < MOST_EVENTS:
            self._events.append(event)
        else:
            self._events[-1] = _TOO_LONG


def is_journal(text: str) -> bool:
    """Return whether `text` is a journal, or "" (not known)."""
    return not text or _FORM.fullmatch(text) is not None


def read_journal(text: str) -> JournalEntry:
    """Return the events of a journal's text, which is valid (`is_journal`) and not empty."""
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
