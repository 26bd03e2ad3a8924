"""One loop alone works on a run, and what it ended as stands."""

import asyncio
from pathlib import Path

import pytest

from archive_svc.archive import LocalArchive
from kernel_foundry.domain.archive import LeaseHolder, Run, RunBudget, RunState
from kernel_foundry.process_identity import new_holder
from kernel_foundry.sdk.loop import lease
from kernel_foundry.sdk.loop.lease import run_lease
from tests.domain_values import run_spec

SPEC = run_spec()


class _SlowToRenew(LocalArchive):
    """An archive that every renewal reaches late: once `arrives` is set."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"sqlite:///{folder}/runs.db")
        self.taken = False
        self.is_sent = asyncio.Event()
        self.arrives = asyncio.Event()

    async def hold_run(self, name: str, holder: LeaseHolder, budget: RunBudget) -> Run:
        if self.taken:
            self.is_sent.set()
            await self.arrives.wait()
        self.taken = True
        return await super().hold_run(name, holder, budget)


async def test_a_renewal_under_way_does_not_undo_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind the end it would have the run held again, which reads as interrupted afterwards."""
    monkeypatch.setattr(lease, "_RENEWAL_SECONDS", 0.0)
    archive = _SlowToRenew(tmp_path)
    await archive.create_run(SPEC)
    async with run_lease(archive, "run", new_holder(), RunBudget) as finish:
        await archive.is_sent.wait()
        assert (await finish(RunState.FINISHED)).state is RunState.FINISHED
        archive.arrives.set()
        await asyncio.sleep(0)
        await archive.stats("run")  # its thread takes calls in turn: a late renewal came before
    assert (await archive.get_run("run")).state is RunState.FINISHED
    await archive.close()
