"""Steering: what a person asks of a run while it goes on, kept as events in the archive."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kernel_foundry.domain.candidate import LONGEST_CANDIDATE, KernelSource
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.measures import Measures
from kernel_foundry.domain.trick import LONGEST_TRICK, MOST_TRICKS, one_spaced

LONGEST_HINT: Final = 2000
"""Characters of a hint."""

MOST_STEERING: Final = 1000
"""Events of one run; the last of them is a stop."""


_VALUE: Final = re.compile(r"(?<![\w=])(\w++)=(\w++)(?!=)")


class SteeringAction(StrEnum):
    """The kind of a steering action."""

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
    """Neither aim at a cell nor start from its elites; or propose nothing that uses a trick."""
    RELEASE = "release"
    """Take the pin or ban of a cell, or the ban of a trick, back; without either all of them."""
    INJECT = "inject"
    """Judge a candidate, which may become a parent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steering:
    """One thing that is asked."""

    action: SteeringAction
    text: str = ""
    """The text of HINT, at most `LONGEST_HINT` characters; the trick of BAN and RELEASE, at most
    `LONGEST_TRICK`, written as `one_spaced` does."""
    cell: Measures | None = None
    """The cell of PIN, BAN or RELEASE; the latter two may have a trick in its place."""
    source: KernelSource | None = None
    """The candidate of INJECT."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SteeringEvent:
    """A steering action, and when it was asked for."""

    sequence: int
    """1-based position among the run's steering events."""
    steering: Steering
    steered_unix_s: float
    evaluation_count: int
    """Evaluations in the run then."""


class SteeringState:
    """The steering that is in force after some events."""

    def __init__(self, events: Iterable[SteeringEvent] = ()) -> None:
        self.sequence = 0
        """Sequence of the last event."""
        self.is_paused = False
        self.is_stopped = False
        self.hint = ""
        self.pinned: Measures | None = None
        self.banned: frozenset[Measures] = frozenset()
        self.tricks: tuple[str, ...] = ()
        """Those that are banned, the oldest first."""
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
            case SteeringAction.BAN if steering.text not in self.tricks:
                self.tricks += (steering.text,)
            case SteeringAction.RELEASE if steering.cell is not None:
                self.banned -= {steering.cell}
                self._unpin(steering.cell)
            case SteeringAction.RELEASE if steering.text:
                self.tricks = tuple(trick for trick in self.tricks if trick != steering.text)
            case SteeringAction.RELEASE:
                self.banned, self.pinned, self.tricks = frozenset(), None, ()

    def fault(self, steering: Steering) -> str:
        """Return why this cannot be asked now, though its parts are right; "" when it can."""
        is_ban = steering.action is SteeringAction.BAN and steering.text
        if is_ban and steering.text not in self.tricks and len(self.tricks) >= MOST_TRICKS:
            return f"{MOST_TRICKS} tricks are banned: release one before another is banned"
        return ""

    def _unpin(self, cell: Measures) -> None:
        if self.pinned == cell:
            self.pinned = None


def hinted_values(hint: str) -> dict[str, str]:
    """Return the NAME=VALUE pairs of a hint: genes for recipes, TUNE values for sweeps."""
    return dict(_VALUE.findall(hint))


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


_WITH_CELL: Final = (SteeringAction.PIN, SteeringAction.BAN, SteeringAction.RELEASE)
_WITH_TRICK: Final = (SteeringAction.BAN, SteeringAction.RELEASE)


def steering_fault(steering: Steering, language: Language) -> str:
    """Return the fault of an action on a run in `language`; "" if there is none."""
    action, text, source = steering.action, steering.text, steering.source
    if len(text) > LONGEST_HINT:
        return f"a hint of {len(text)} characters, expected at most {LONGEST_HINT}"
    texts = (text,) if source is None else (text, source.device_code, source.plan)
    if not all(map(_is_text, texts)):
        return "NUL or half of a character in a text"
    if text and action not in (SteeringAction.HINT, *_WITH_TRICK):
        return f"{action.value} takes no text"
    if action is not SteeringAction.HINT and len(text) > LONGEST_TRICK:
        return f"a trick of {len(text)} characters, expected at most {LONGEST_TRICK}"
    if action is not SteeringAction.HINT and text != one_spaced(text):
        return "a trick has one blank between words, and no line breaks"
    if action is SteeringAction.PIN and steering.cell is None:
        return "pin needs a cell"
    if action is SteeringAction.BAN and (steering.cell is None) == (not text):
        return "ban needs a cell or a trick"
    if action is SteeringAction.RELEASE and steering.cell is not None and text:
        return "release takes a cell or a trick back, or all"
    if steering.cell is not None and action not in _WITH_CELL:
        return f"{action.value} takes no cell"
    if (source is not None) != (action is SteeringAction.INJECT):
        return "inject needs a candidate, and nothing else takes one"
    if source is not None and source.language is not language:
        return f"a candidate in {source.language.value}, expected {language.value}"
    if source is not None and len(source.device_code) + len(source.plan) > LONGEST_CANDIDATE:
        return f"a candidate of more than {LONGEST_CANDIDATE} characters"
    return ""
