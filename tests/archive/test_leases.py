"""A run whose loop is gone reads as interrupted and is free; by its process, or by the time."""

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

from archive_svc.archive import LocalArchive
from archive_svc.store import leases
from kernel_foundry.domain.archive import LEASE_SECONDS, LeaseHolder, RunBudget, RunSpec, RunState
from kernel_foundry.errors import RunHeldError
from kernel_foundry.process_identity import is_gone, new_holder

BUDGET = RunBudget(evaluations=40, minutes=2.5)


class _Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    made = _Clock()
    monkeypatch.setattr(leases, "time", made)
    return made


def _ended() -> LeaseHolder:
    """Return a loop of a process of this host that has ended."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        text = Path(f"/proc/{process.pid}/stat").read_text()
        start = int(text.rpartition(")")[2].split()[19])
        holder = dataclasses.replace(new_holder(), process_id=process.pid, process_start=start)
        assert not is_gone(holder)
    return holder


async def test_a_lease_runs_out(store_url: str, spec: RunSpec, clock: _Clock) -> None:
    """Whoever cannot look at the process goes by the time; the old loop may not take it back."""
    archive = LocalArchive(store_url)
    await archive.create_run(spec)
    first = dataclasses.replace(new_holder(), kernel="another")
    second = dataclasses.replace(new_holder(), kernel="a third")
    await archive.hold_run(spec.name, first, BUDGET)
    clock.now += LEASE_SECONDS - 1
    with pytest.raises(RunHeldError):
        await archive.hold_run(spec.name, second, BUDGET)
    await archive.hold_run(spec.name, first, BUDGET)
    clock.now += LEASE_SECONDS + 1
    assert (await archive.get_run(spec.name)).state is RunState.INTERRUPTED
    assert (await archive.hold_run(spec.name, second, BUDGET)).state is RunState.RUNNING
    with pytest.raises(RunHeldError):
        await archive.hold_run(spec.name, first, BUDGET)
    await archive.close()


async def test_a_process_that_ended_is_seen_at_once(store_url: str, spec: RunSpec) -> None:
    archive = LocalArchive(store_url)
    await archive.create_run(spec)
    await archive.hold_run(spec.name, _ended(), BUDGET)
    (run,) = await archive.list_runs()
    assert run.state is RunState.INTERRUPTED
    events = [event async for event in archive.watch(spec.name)]
    assert [event.state for event in events] == [RunState.INTERRUPTED]
    assert (await archive.hold_run(spec.name, new_holder(), BUDGET)).state is RunState.RUNNING
    await archive.close()


async def test_a_process_id_that_came_again_is_another_process() -> None:
    holder = new_holder()
    assert not is_gone(holder)
    assert is_gone(dataclasses.replace(holder, process_start=holder.process_start + 1))
    assert not is_gone(dataclasses.replace(holder, process_start=0, kernel="another"))
