"""Runs belong to the user whose token made them: others read, an admin may do everything."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from archive_svc.archive import LocalArchive
from archive_svc.service import archive_service
from kernel_foundry.domain.archive import Run, RunBudget, RunState
from kernel_foundry.domain.steering import Steering, SteeringAction
from kernel_foundry.domain.task import Task, Workload
from kernel_foundry.errors import PermissionDeniedError
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
    """Has a newer run as soon as the newest was looked up."""

    async def get_run(self, name: str) -> Run:
        run = await super().get_run(name)
        if not name:
            await self.create_run(run_spec("newer", task=TASK))
        return run


async def test_the_newest_run_is_changed_as_it_was_when_its_owner_was_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = BusyArchive(f"sqlite:///{tmp_path / 'runs.db'}")
    token = TokenFile(tmp_path / "tokens.json").create("ada", Role.RUN, 1)
    monkeypatch.setenv("KERNEL_FOUNDRY_TOKEN", token)
    security = ServerSecurity(tokens=tmp_path / "tokens.json", audit_log=tmp_path / "audit")
    async with running([archive_service(archive)], "127.0.0.1:0", security=security) as target:
        ada = RemoteArchive(target)
        await ada.create_run(run_spec("ada-s", task=TASK))
        for change in CHANGES.values():
            await change(ada, "")
            newer = await archive.get_run("newer")
            assert (newer.state, newer.evaluation_count, newer.budget) == (
                RunState.RUNNING,
                0,
                None,
            )
            assert await archive.steering("newer") == ()
            await archive.delete_run("newer")
        assert (await ada.get_run("-2")).state is RunState.FINISHED
        await ada.close()
