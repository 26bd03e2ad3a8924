"""Which loop works on a run: one at a time, and one that dies is noticed.

A lease expires by the clock of whoever asks. If the loop runs on this host, we also check whether
its process has ended, so that a run can be resumed at once after a kill.
"""

import time
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from archive_svc.store.schema import RUNS
from kernel_foundry.domain.archive import LEASE_SECONDS, LeaseHolder, RunBudget, RunState
from kernel_foundry.domain.plain import from_json, to_json
from kernel_foundry.errors import RunHeldError
from kernel_foundry.process_identity import is_gone

_LEASE: Final = sa.select(RUNS.c.name, RUNS.c.holder, RUNS.c.held_until_unix_s).where(
    RUNS.c.id == sa.bindparam("run")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLease:
    """A run's lease as it stands."""

    run: str
    """Name of the run."""
    holder: LeaseHolder | None
    until_unix_s: float

    def is_live(self) -> bool:
        """Return whether its holder may still be at work."""
        if self.holder is None or time.time() >= self.until_unix_s:
            return False
        return not is_gone(self.holder)

    def age_s(self) -> float:
        """Return how long ago its holder was last heard of."""
        return time.time() - (self.until_unix_s - LEASE_SECONDS)


def state_of(row: Any) -> RunState:
    """Return where a run stands: one whose loop is gone was interrupted."""
    state = RunState(row.state)
    if state is RunState.RUNNING and row.holder and not _lease(row).is_live():
        return RunState.INTERRUPTED
    return state


def read_lease(connection: sa.Connection, run_id: int) -> RunLease:
    """Return the lease of a run, which exists."""
    return _lease(connection.execute(_LEASE, {"run": run_id}).one())


def check_lease(connection: sa.Connection, run_id: int, holder: LeaseHolder | None = None) -> None:
    """Refuse to change a run that another loop than `holder` works on.

    Raises:
        RunHeldError: it says which one.
    """
    lease = read_lease(connection, run_id)
    other = lease.holder
    if other is None or other == holder or not lease.is_live():
        return
    raise RunHeldError(
        f"run {lease.run} is being worked on by process {other.process_id} on {other.host}, last "
        f"heartbeat {lease.age_s():.0f} s ago: stop that process first, or start a run of another "
        f"name; the lease of a dead loop expires after {LEASE_SECONDS:.0f} s",
        run=lease.run,
        host=other.host,
        process=str(other.process_id),
    )


def write_lease(
    connection: sa.Connection, run_id: int, holder: LeaseHolder, budget: RunBudget
) -> None:
    """Make a run a holder's own from now on."""
    values = {
        "state": RunState.RUNNING.value,
        "holder": to_json(holder),
        "held_until_unix_s": time.time() + LEASE_SECONDS,
        "budget": to_json(budget),
    }
    connection.execute(RUNS.update().where(RUNS.c.id == run_id).values(values))


def write_state(connection: sa.Connection, run_id: int, state: RunState) -> None:
    """Record where a run stands and free it."""
    values = {"state": state.value, "holder": "", "held_until_unix_s": 0.0}
    connection.execute(RUNS.update().where(RUNS.c.id == run_id).values(values))


def _lease(row: Any) -> RunLease:
    holder = from_json(LeaseHolder, row.holder) if row.holder else None
    return RunLease(run=row.name, holder=holder, until_unix_s=row.held_until_unix_s)
