"""Steering as text and JSON; its effects are in `kernel_foundry.domain.steering`."""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from kernel_foundry.domain.candidate import LONGEST_CANDIDATE
from kernel_foundry.domain.measures import DIMENSIONS, LEVELS, Measures
from kernel_foundry.domain.steering import (
    MOST_STEERING,
    Steering,
    SteeringAction,
    SteeringEvent,
    SteeringState,
)
from kernel_foundry.domain.trick import LONGEST_TRICK, one_spaced
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.plan.candidate_text import ExtractionError, split
from kernel_foundry.ports import Archive
from kernel_foundry.sdk.services import Directory

_CELL: Final = re.compile(rf"[0-{LEVELS - 1}](,[0-{LEVELS - 1}]){{{len(DIMENSIONS) - 1}}}")
_LESSON: Final = re.compile(r"lesson ([0-9]{1,9})")


def steering_of(
    action: SteeringAction, *, text: str = "", cell: str = "", candidate: str = ""
) -> Steering:
    """Return a steering action from a user's texts.

    Args:
        action: What is asked.
        text: Of a hint; of a ban or a release the trick.
        cell: "MEMORY,ALGORITHM,SYNCHRONIZATION", such as "2,1,0"; "" for none.
        candidate: Markdown of a candidate; "" for none.

    Raises:
        InvalidArgumentError: that is no cell, or no candidate is in the text.
    """
    if cell and _CELL.fullmatch(cell) is None:
        raise InvalidArgumentError(
            f"cell {cell[:20]!r}: expected the levels of memory, algorithm and synchronization, "
            f"0 to {LEVELS - 1} each, such as 2,1,0",
            field="cell",
        )
    if len(candidate) > LONGEST_CANDIDATE:
        raise InvalidArgumentError(
            f"a candidate of more than {LONGEST_CANDIDATE} characters", field="candidate"
        )
    try:
        source = split(candidate) if candidate else None
    except ExtractionError as error:
        raise InvalidArgumentError(str(error), field="candidate") from error
    levels = dict(zip(DIMENSIONS, map(int, cell.split(",")), strict=True)) if cell else None
    return Steering(
        action=action,
        text=text.strip() if action is SteeringAction.HINT else one_spaced(text),
        cell=None if levels is None else Measures(**levels),
        source=source,
    )


async def steer_run(directory: Directory, run: str, steering: Steering) -> SteeringEvent:
    """Steer a run; the trick "lesson NUMBER" is replaced by the advice of that lesson.

    Raises:
        InvalidArgumentError: as `Archive.steer`, or there is no such lesson.
        RunNotFoundError: no such run.
    """
    archive = await directory.archive()
    named = _LESSON.fullmatch(steering.text)
    if named is not None and steering.action in (SteeringAction.BAN, SteeringAction.RELEASE):
        move = await _move_of(directory, int(named[1]))
        steering = replace(steering, text=move)
    return await archive.steer(run, steering)


async def _move_of(directory: Directory, lesson: int) -> str:
    """What a lesson of the library says to do, as a trick; a longer text to its last whole word."""
    experience = await directory.experience()
    found = await experience.lessons(after=lesson - 1, limit=1)
    if not found or found[0].id != lesson:
        raise InvalidArgumentError(
            f"no lesson {lesson}: `experience list` shows what there is", field="text"
        )
    words = one_spaced(found[0].move)
    if len(words) > LONGEST_TRICK:
        words = words[:LONGEST_TRICK].rpartition(" ")[0] or words[:LONGEST_TRICK]
    return words


async def steering_events(archive: Archive, run: str) -> tuple[SteeringEvent, ...]:
    """Return all steering events of a run, in order."""
    return await archive.steering(run, limit=MOST_STEERING)


def steering_text(steering: Steering) -> str:
    """Return an action in words; the user's own text is not made printable."""
    action, cell = steering.action, cell_text(steering.cell)
    match action:
        case SteeringAction.HINT:
            return f"hint: {steering.text}" if steering.text else "no hint any more"
        case SteeringAction.INJECT if steering.source is not None:
            return f"injected candidate {steering.source.digest[:12]}"
        case SteeringAction.BAN | SteeringAction.RELEASE if steering.text:
            return f"{action.value} trick: {steering.text}"
        case SteeringAction.RELEASE if steering.cell is None:
            return "release all cells and tricks"
    return f"{action.value} cell {cell}" if cell else action.value


def cell_text(cell: Measures | None) -> str:
    """Return "2,1,0" of a cell; "" of none."""
    return "" if cell is None else ",".join(map(str, cell.cell))


def steering_object(events: Iterable[SteeringEvent]) -> dict[str, Any]:
    """Return the `--json` object of a run's steering: its present state, and all events."""
    events = tuple(events)
    state = SteeringState(events)
    return {
        "paused": state.is_paused,
        "stopped": state.is_stopped,
        "hint": state.hint,
        "pinned": cell_text(state.pinned) or None,
        "banned": sorted(map(cell_text, state.banned)),
        "tricks": list(state.tricks),
        "events": [event_object(event) for event in events],
    }


def event_object(event: SteeringEvent) -> dict[str, Any]:
    """Return the `--json` object of one event."""
    steering = event.steering
    return {
        "sequence": event.sequence,
        "action": steering.action.value,
        "text": steering.text,
        "cell": cell_text(steering.cell) or None,
        "candidate": steering.source.digest if steering.source else None,
        "steered_unix_s": event.steered_unix_s,
        "evaluations": event.evaluation_count,
    }
