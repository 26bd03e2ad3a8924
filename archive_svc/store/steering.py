"""Steering events in the store; in the transactions of whoever calls."""

import time
from typing import Any, Final

import sqlalchemy as sa

from archive_svc.store.insert import LOCK_RUN
from archive_svc.store.schema import RUNS, STEERING
from kernel_foundry.domain.plain import from_json, to_json
from kernel_foundry.domain.steering import (
    MOST_STEERING,
    Steering,
    SteeringAction,
    SteeringEvent,
    SteeringState,
)
from kernel_foundry.errors import InvalidArgumentError, RunNotFoundError

LARGEST_STEERING: Final = 8 << 20
"""Characters of all events of one run as JSON, a last stop apart."""

_LENGTH: Final = sa.select(sa.func.coalesce(sa.func.sum(sa.func.length(STEERING.c.steering)), 0))
_AFTER: Final = (
    sa.select(STEERING)
    .where(
        STEERING.c.run_id == sa.bindparam("run"),
        STEERING.c.sequence > sa.bindparam("after"),
    )
    .order_by(STEERING.c.sequence)
    .limit(sa.bindparam("limit"))
)


def insert_steering(connection: sa.Connection, run_id: int, steering: Steering) -> SteeringEvent:
    """Add an event behind the run's others; what was asked last is not added again.

    Raises:
        RunNotFoundError: no run has that id.
        InvalidArgumentError: the run has as much as it may, or as many tricks are banned.
    """
    row = connection.execute(LOCK_RUN, {"run": run_id}).first()
    if row is None:
        raise RunNotFoundError("the run was deleted", run="")
    count: int = row.steering_count
    for last in steering_after(connection, run_id, count - 1, 1):
        if last.steering == steering:
            return last
    # Whatever was asked before, a run can be stopped.
    is_stop = steering.action is SteeringAction.STOP
    if count >= MOST_STEERING - (not is_stop):
        raise InvalidArgumentError(
            f"the run was steered {count} times: it can only be stopped", field="steering"
        )
    if steering.action is SteeringAction.BAN and steering.text:
        fault = SteeringState(steering_after(connection, run_id, 0, count)).fault(steering)
        if fault:
            raise InvalidArgumentError(fault, field="steering")
    length: int = connection.execute(_LENGTH.where(STEERING.c.run_id == run_id)).scalar_one()
    if length + len(to_json(steering)) > LARGEST_STEERING and not is_stop:
        raise InvalidArgumentError(
            f"the run's steering would have more than {LARGEST_STEERING} characters",
            field="steering",
        )
    event = SteeringEvent(
        sequence=count + 1,
        steering=steering,
        steered_unix_s=time.time(),
        evaluation_count=row.evaluation_count,
    )
    write_steering(connection, run_id, (event,))
    return event


def write_steering(
    connection: sa.Connection, run_id: int, events: tuple[SteeringEvent, ...]
) -> None:
    """Store events, the run's last ones, as they are."""
    if not events:
        return
    rows = [
        {
            "run_id": run_id,
            "sequence": event.sequence,
            "steered_unix_s": event.steered_unix_s,
            "evaluation_count": event.evaluation_count,
            "steering": to_json(event.steering),
        }
        for event in events
    ]
    connection.execute(STEERING.insert(), rows)
    count = RUNS.update().where(RUNS.c.id == run_id).values(steering_count=events[-1].sequence)
    connection.execute(count)


def steering_after(
    connection: sa.Connection, run_id: int, after: int, limit: int
) -> tuple[SteeringEvent, ...]:
    """Return up to `limit` events with a sequence above `after`, in order."""
    rows = connection.execute(_AFTER, {"run": run_id, "after": after, "limit": limit})
    return tuple(map(_event, rows))


def _event(row: Any) -> SteeringEvent:
    return SteeringEvent(
        sequence=row.sequence,
        steering=from_json(Steering, row.steering),
        steered_unix_s=row.steered_unix_s,
        evaluation_count=row.evaluation_count,
    )
