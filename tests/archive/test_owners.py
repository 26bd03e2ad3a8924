"""Runs belong to the user whose token made them: others read, an admin may do everything."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from archive_svc.archive import LocalArchive
from archive_svc.service import archive_service
from archive_svc.store.rows import RunRow
from archive_svc.store.store import Store
from kernel_foundry.domain.archive import RunBudget, RunState
from kernel_foundry.domain.steering import Steering, SteeringAction
from kernel_foundry.domain.task import Task, Workload
from kernel_foundry.errors import KernelFoundryError, PermissionDeniedError, RunNotFoundError
from kernel_foundry.process_identity import new_holder
from kernel_foundry.rpc.archive import RemoteArchive
from kernel_foundry.rpc.security import ServerSecurity
from kernel_foundry.rpc.server import running
from kernel_foundry.rpc.tokens import Role, TokenFile
from tests.contract.archive_entries import candidate_of, verdict_on
from tests.domain_values import run_spec

TASK = Task(name="t", reference="class Model: ...", workloads=(Workload(name="default"),))


async def _add(archive: RemoteArchive, run: str) -> None:
    candidate = candidate_of("new")
    verdict = await verdict_on(TASK, candidate)
    await archive.add(run, candidate, verdict, request_id="r")


CHANGES: dict[str, Callable[[RemoteArchive, str], Awaitable[object]]] = {
    "hold": lambda a, run: a.hold_run(run, new_holder(), RunBudget()),
    "select": lambda a, run: a.select(run),
    "drop": lambda a, run: a.drop_selection(run, 0),
    "add": _add,
    "steer": lambda a, run: a.steer(run, Steering(action=SteeringAction.STOP)),
    "finish": lambda a, run: a.finish_run(run, RunState.FINISHED),
    "rename": lambda a, run: a.rename_run(run, f"{run}-2"),
}
"""In an order in which an owner may make all of them."""


async def test_a_run_is_changed_by_its_owner_and_an_admin_alone(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = TokenFile(tmp_path / "tokens.json")
    archive = LocalArchive(store_url)
    await archive.create_run(run_spec("nobody-s", task=TASK))  # as over a UNIX socket
    security = ServerSecurity(tokens=tmp_path / "tokens.json", audit_log=tmp_path / "audit")
    async with running([archive_service(archive)], "127.0.0.1:0", security=security) as target:

        def client(name: str, role: Role) -> RemoteArchive:
            monkeypatch.setenv("KERNEL_FOUNDRY_TOKEN", file.create(name, role, 1))
            return RemoteArchive(target)

        ada, bob = client("ada", Role.RUN), client("bob", Role.RUN)
        root = client("root", Role.ADMIN)
        for who, run in ((ada, "ada-s"), (bob, "bob-s")):
            await who.create_run(run_spec(run, task=TASK))
        runs = {run.spec.name: run.owner for run in await bob.list_runs()}
        assert runs == {"nobody-s": "", "ada-s": "ada", "bob-s": "bob"}
        assert [run.spec.name for run in await bob.list_runs(mine=True)] == ["bob-s"]
        assert (await bob.get_run("ada-s")).owner == "ada"
        assert await bob.evaluations("ada-s") == ()
        for change in CHANGES.values():
            for run, whose in (("ada-s", "ada"), ("nobody-s", "no user")):
                with pytest.raises(PermissionDeniedError, match=f"belongs to {whose}"):
                    await change(bob, run)
        for run in ("ada-s", "nobody-s"):
            with pytest.raises(PermissionDeniedError):
                await bob.delete_run(run)
        for change in CHANGES.values():
            await change(ada, "ada-s")
        await ada.delete_run("ada-s-2")
        for change in CHANGES.values():
            await change(root, "bob-s")
        assert (await bob.get_run("bob-s-2")).owner == "bob"
        await root.delete_run("nobody-s")
        for who in (ada, bob, root):
            await who.close()


class BusyArchive(LocalArchive):
    """Somebody else is at its store as soon as a run was looked up."""

    meanwhile: Callable[[], object] | None = None
    """What that one does, once."""

    def _row(self, name: str) -> RunRow:
        row = super()._row(name)
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return row


async def _is_untouched(archive: LocalArchive, name: str) -> bool:
    run = await archive.get_run(name)
    steered = await archive.steering(name)
    return (run.state, run.evaluation_count, run.budget, steered) == (RunState.RUNNING, 0, None, ())


@pytest.fixture
async def busy(tmp_path: Path) -> AsyncIterator[tuple[BusyArchive, Store]]:
    """Yield an archive and its store as another process has it."""
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    archive, store = BusyArchive(url), Store(url)
    yield archive, store
    store.close()


@pytest.fixture
async def ada(
    busy: tuple[BusyArchive, Store], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[RemoteArchive]:
    """Yield a user's client of that archive."""
    token = TokenFile(tmp_path / "tokens.json").create("ada", Role.RUN, 1)
    monkeypatch.setenv("KERNEL_FOUNDRY_TOKEN", token)
    security = ServerSecurity(tokens=tmp_path / "tokens.json", audit_log=tmp_path / "audit")
    services = [archive_service(busy[0])]
    async with running(services, "127.0.0.1:0", security=security) as target:
        client = RemoteArchive(target)
        yield client
        await client.close()


@pytest.mark.parametrize("name", [*CHANGES, "delete"])
async def test_a_run_that_has_the_name_since_is_left_alone(
    busy: tuple[BusyArchive, Store], ada: RemoteArchive, name: str
) -> None:
    """Her own was deleted by another process meanwhile, and another user has begun one."""
    archive, store = busy
    changes = CHANGES | {"delete": lambda a, run: a.delete_run(run)}
    await ada.create_run(run_spec("first", task=TASK))

    def begin_another() -> None:
        row = store.find_run("first")
        assert row is not None
        store.delete_run(row.id)
        assert store.insert_run(run_spec("first", task=TASK), "bob")

    archive.meanwhile = begin_another
    with suppress(KernelFoundryError):  # of a run that is gone
        await changes[name](ada, "first")
    assert archive.meanwhile is None
    assert (await archive.get_run("first")).owner == "bob"
    assert await _is_untouched(archive, "first")


@pytest.mark.parametrize("task", [TASK, replace(TASK, name="another")], ids=lambda t: t.name)
async def test_a_verdict_goes_to_the_run_that_has_the_name_now(tmp_path: Path, task: Task) -> None:
    """Though this archive knows another one by it, which another process has renamed."""
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    archive, elsewhere = LocalArchive(url), LocalArchive(url)
    await archive.create_run(run_spec("first", task=TASK))
    candidate = candidate_of("new")
    verdict = await verdict_on(TASK, candidate)
    await archive.add("first", candidate, verdict, request_id="1")
    await elsewhere.rename_run("first", "second")
    await elsewhere.create_run(run_spec("first", task=task))
    await archive.add("first", candidate, await verdict_on(task, candidate), request_id="2")
    counts = {run.spec.name: run.evaluation_count for run in await archive.list_runs()}
    assert counts == {"first": 1, "second": 1}
    for one in (archive, elsewhere):
        await one.close()


async def test_a_run_that_is_gone_is_neither_held_nor_finished(
    busy: tuple[BusyArchive, Store],
) -> None:
    _, store = busy
    assert store.insert_run(run_spec("first", task=TASK))
    run_id = store.run_id("first")
    assert run_id is not None
    store.delete_run(run_id)
    with pytest.raises(RunNotFoundError):
        store.hold(run_id, new_holder(), RunBudget())
    with pytest.raises(RunNotFoundError):
        store.set_state(run_id, RunState.FINISHED)
