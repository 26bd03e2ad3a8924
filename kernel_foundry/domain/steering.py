"""Steering: what a person asks of a run while it goes on, kept as events in the archive."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kernel_foundry.domain.candidate import LONGEST_CANDIDATE, KernelSource
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.measures import Measures

LONGEST_HINT: Final = 2000
"""Characters of a hint."""

MOST_STEERING: Final = 1000
"""Events of one run; the last of them is a stop."""


class SteeringAction(StrEnum):
    """What is asked."""

    PAUSE = "pause"
    """Begin nothing new; what is under way is finished."""
    RESUME = "resume"
    """Go on after a pause or a stop."""
    STOP = "stop"
    """End the search; the winner is measured again, as at the end of a budget."""
    HINT = "hint"
    """Words for the next proposals, in place of those before; empty: none any more."""
    PIN = "pin"
    """Aim at one cell and start from its elite."""
    BAN = "ban"
    """Neither aim at a cell nor start from its elites."""
    RELEASE = "release"
    """Take the pin or ban of a cell back; without a cell all of them."""
    INJECT = "inject"
    """Judge a candidate, which may become a parent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steering:
    """One thing that is asked."""

    action: SteeringAction
    text: str = ""
    """Of HINT; at most `LONGEST_HINT` characters."""
    cell: Measures | None = None
    """Of PIN, BAN and RELEASE."""
    source: KernelSource | None = None
    """Of INJECT."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SteeringEvent:
    """What was asked, and when."""

    sequence: int
    """1-based position among the run's steering events."""
    steering: Steering
    steered_unix_s: float
    evaluation_count: int
    """Evaluations in the run then."""


class SteeringState:
    """What is in force after some events."""

    def __init__(self, events: Iterable[SteeringEvent] = ()) -> None:
        self.sequence = 0
        """Of the last event."""
        self.is_paused = False
        self.is_stopped = False
        self.hint = ""
        self.pinned: Measures | None = None
        self.banned: frozenset[Measures] = frozenset()
        for event in events:
            self.take(event)

    def take(self, event: SteeringEvent) -> None:
        """Put the next event in force; an injected candidate does not change the state."""
        self.sequence = event.sequence
        steering = event.steering
        match steering.action:
            case SteeringAction.PAUSE:
                self.is_paused = True
            case SteeringAction.RESUME:
                self.is_paused = self.is_stopped = False
            case SteeringAction.STOP:
                self.is_stopped = True
            case SteeringAction.HINT:
                self.hint = steering.text
            case SteeringAction.PIN:
                self.pinned = steering.cell
                self.banned -= {steering.cell}
            case SteeringAction.BAN if steering.cell is not None:
                self.banned |= {steering.cell}
                self._unpin(steering.cell)
            case SteeringAction.RELEASE if steering.cell is not None:
                self.banned -= {steering.cell}
                self._unpin(steering.cell)
            case SteeringAction.RELEASE:
                self.banned, self.pinned = frozenset(), None

    def _unpin(self, cell: Measures) -> None:
        if self.pinned == cell:
            self.pinned = None


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


_WITH_CELL: Final = (SteeringAction.PIN, SteeringAction.BAN)


def steering_fault(steering: Steering, language: Language) -> str:
    """Return what is wrong with what is asked of a run in `language`; "" when nothing is."""
    action, text, source = steering.action, steering.text, steering.source
    if len(text) > LONGEST_HINT:
        return f"a hint of {len(text)} characters, expected at most {LONGEST_HINT}"
    texts = (text,) if source is None else (text, source.device_code, source.plan)
    if not all(map(_is_text, texts)):
        return "NUL or half of a character in a text"
    if text and action is not SteeringAction.HINT:
        return f"{action.value} takes no text"
    if action in _WITH_CELL and steering.cell is None:
        return f"{action.value} needs a cell"
    if steering.cell is not None and action not in (*_WITH_CELL, SteeringAction.RELEASE):
        return f"{action.value} takes no cell"
    if (source is not None) != (action is SteeringAction.INJECT):
        return "inject needs a candidate, and nothing else takes one"
    if source is not None and source.language is not language:
        return f"a candidate in {source.language.value}, expected {language.value}"
    if source is not None and len(source.device_code) + len(source.plan) > LONGEST_CANDIDATE:
        return f"a candidate of more than {LONGEST_CANDIDATE} characters"
    return ""
