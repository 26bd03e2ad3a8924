"""Commands that go on without their terminal: submitted, watched, cancelled, deleted."""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from evaluator_svc.service import evaluator_service
from kernel_foundry.cli import jobs as jobs_command
from kernel_foundry.cli import submit as submit_command
from kernel_foundry.domain.archive import LeaseHolder
from kernel_foundry.errors import InvalidArgumentError, ProcessLostError
from kernel_foundry.process_identity import new_holder
from kernel_foundry.rpc.server import running
from kernel_foundry.sdk.jobs.job import START_S, JobFolder, JobState, new_job
from kernel_foundry.sdk.jobs.submit import cancel
from kernel_foundry.testing.evaluator import FAKE_DEVICE, FakeEvaluator

TASK = """
class Model: ...
def get_inputs(): return []
def get_init_inputs(): return []
"""
CANDIDATE = "```sycl\n// nothing\n```\n\n```python\ndef launch(out):\n    pass\n```\n"


class Held(FakeEvaluator):
    """Holds each evaluation, and notes when a caller leaves."""

    def __init__(self) -> None:
        super().__init__(self._hold, replace(FAKE_DEVICE, id="null:0"))
        self.began = asyncio.Event()
        self.left = asyncio.Event()
        self.may_end = asyncio.Event()

    async def _hold(self) -> None:
        self.began.set()
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.left.set()
            raise


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JobFolder:
    monkeypatch.setenv("KERNEL_FOUNDRY_DATA_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "op.py").write_text(TASK)
    (tmp_path / "mine.md").write_text(CANDIDATE)
    return JobFolder(tmp_path / "jobs")


@pytest.fixture
async def held(tmp_path: Path) -> AsyncIterator[tuple[Held, list[str]]]:
    """An evaluator, and the arguments that have it judge a candidate."""
    evaluator = Held()
    async with running([evaluator_service(evaluator)], f"unix:{tmp_path}/e.sock") as target:
        yield evaluator, ["evaluate", "op.py", "mine.md", "--evaluator", target, "--json"]


async def _call(command: click.Command, *arguments: str) -> tuple[str, Any]:
    """The standard output of a command, and what it returns; beside what is served here."""
    result = await asyncio.to_thread(
        CliRunner().invoke, command, list(arguments), standalone_mode=False
    )
    if result.exception is not None:
        raise result.exception
    return result.stdout, result.return_value


async def _until_judged(evaluator: Held, folder: JobFolder, job: str) -> None:
    while not evaluator.began.is_set():
        assert not folder.find(job).has_ended, folder.log(job).read_text()
        await asyncio.wait({asyncio.create_task(evaluator.began.wait())}, timeout=0.5)


async def test_a_job_goes_on_by_itself_and_says_how_it_ended(
    folder: JobFolder, held: tuple[Held, list[str]]
) -> None:
    """`submit` returns at once; `watch` shows what the command says and has its exit code."""
    evaluator, arguments = held
    submitted, _ = await _call(submit_command.command, *arguments)
    job = submitted.strip()
    await _until_judged(evaluator, folder, job)
    assert folder.find(job).state is JobState.RUNNING
    session = folder.find(job).process
    assert session is not None
    assert os.getsid(session.process_id) != os.getsid(0)
    with pytest.raises(InvalidArgumentError, match="cancel it first"):
        await _call(jobs_command.delete, job)
    evaluator.may_end.set()
    said, code = await _call(jobs_command.watch, job)
    assert json.loads(said)["outcome"] == "PASSED"
    assert code == 0
    listed = json.loads((await _call(jobs_command.list_command, "--json"))[0])
    assert [(one["job"], one["state"], one["exit_code"]) for one in listed] == [(job, "done", 0)]
    await _call(jobs_command.delete, job)
    assert folder.jobs() == ()
    assert not folder.log(job).exists()


async def test_cancelling_stops_what_is_running_elsewhere(
    folder: JobFolder, held: tuple[Held, list[str]]
) -> None:
    """The evaluator learns at once that nobody waits for the verdict."""
    evaluator, arguments = held
    job = (await _call(submit_command.command, *arguments))[0].strip()
    await _until_judged(evaluator, folder, job)
    await _call(jobs_command.cancel_command, job)
    await evaluator.left.wait()
    assert folder.find(job).state is JobState.CANCELLED
    with pytest.raises(InvalidArgumentError, match="does not go on: cancelled"):
        await _call(jobs_command.cancel_command, job)


def test_who_ends_watching_is_told_that_the_job_goes_on(
    folder: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what shows it again, and what ends it."""
    job = new_job(["admit", "op.py"], Path.cwd(), priority=0)
    folder.write(job)

    def interrupted(_seconds: float) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("kernel_foundry.cli.jobs.time.sleep", interrupted)
        result = CliRunner().invoke(jobs_command.watch, [job.id])
    assert f"{job.id} is still running: " in result.stderr
    assert f"jobs cancel {job.id}` ends it" in result.stderr


async def test_what_cannot_be_read_is_refused_at_once(folder: JobFolder) -> None:
    """Before anything is started; and commands that need their user are none to submit."""
    for arguments in (("optimize", "op.py", "--evaluation", "x"), ("optimize", "absent", "--no")):
        with pytest.raises(click.UsageError):
            await _call(submit_command.command, *arguments)
    with pytest.raises(click.UsageError):
        await _call(submit_command.command, "token", "create", "ada")
    assert folder.jobs() == ()


async def test_a_command_whose_supervisor_dies_ends(
    folder: JobFolder, held: tuple[Held, list[str]]
) -> None:
    """Nothing runs on unseen: it stops as if it were cancelled, and the job is lost."""
    evaluator, arguments = held
    job = (await _call(submit_command.command, *arguments))[0].strip()
    await _until_judged(evaluator, folder, job)
    supervisor = folder.find(job).process
    assert supervisor is not None
    os.kill(supervisor.process_id, signal.SIGKILL)
    await evaluator.left.wait()
    assert folder.find(job).state is JobState.LOST


@pytest.mark.parametrize("job", ["nope", ""])
async def test_a_job_that_is_changed_is_named(folder: JobFolder, job: str) -> None:
    """Nothing is said to wait for one that there is not, and no other stands for it."""
    other = new_job(("optimize", "op.py"), Path.cwd())
    folder.write(replace(other, ended_unix_s=1.0))
    for command in (jobs_command.cancel_command, jobs_command.delete):
        result = CliRunner().invoke(command, [job])
        assert isinstance(result.exception, InvalidArgumentError)
        assert result.output == ""
    assert folder.newest().id == other.id


async def test_a_job_whose_process_did_not_start_has_failed(
    folder: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(ProcessLostError, match="did not start"):
        await _call(submit_command.command, "evaluate", "op.py", "mine.md")
    assert folder.newest().state is JobState.FAILED
    await _call(jobs_command.delete, folder.newest().id)


def _of_another_process(holder: LeaseHolder) -> LeaseHolder:
    return replace(holder, process_start=1)


def _of_another_boot(holder: LeaseHolder) -> LeaseHolder:
    return replace(holder, kernel="another/1")


@pytest.mark.parametrize("changed", [_of_another_process, _of_another_boot])
def test_a_job_whose_process_is_gone_is_lost(
    folder: JobFolder, changed: Callable[[LeaseHolder], LeaseHolder]
) -> None:
    """As after a restart of the machine; it can be deleted, and nothing is signalled."""
    job = new_job(("optimize", "op.py"), Path.cwd())
    folder.write(replace(job, process=changed(new_holder())))
    assert folder.newest().state is JobState.LOST
    with pytest.raises(InvalidArgumentError, match="does not go on: lost"):
        cancel(folder, job.id)
    folder.delete(folder.find(job.id))
    with pytest.raises(InvalidArgumentError, match="no job was submitted"):
        folder.newest()


def test_a_job_that_never_began_is_lost_in_time(folder: JobFolder) -> None:
    job = new_job(("optimize", "op.py"), Path.cwd())
    folder.write(job)
    assert folder.newest().state is JobState.STARTING
    folder.write(replace(job, submitted_unix_s=time.time() - START_S))
    assert folder.newest().state is JobState.LOST
    folder.delete(folder.newest())


@pytest.mark.parametrize("boot", ["another", ""])
def test_a_process_that_cannot_be_seen_is_not_signalled(
    folder: JobFolder, boot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its id means another process here: on another host, and in another container of this one."""
    here = new_holder()
    boot = boot or here.kernel.partition("/")[0]
    process = replace(here, host="far", kernel=f"{boot}/1")
    job = new_job(("optimize", "op.py"), Path.cwd())
    folder.write(replace(job, process=process))
    monkeypatch.setattr(os, "kill", None)
    with pytest.raises(InvalidArgumentError, match="runs on far: cancel it there"):
        cancel(folder, job.id)


@pytest.mark.parametrize("text", ["{", "[]", '{"id": 1}', "null", "[" * 9999])
def test_a_file_that_holds_no_job_is_said(folder: JobFolder, text: str) -> None:
    """And a name that leads elsewhere is no job."""
    folder.write(new_job(("optimize",), Path.cwd()))
    job = folder.newest()
    folder.file(job.id).write_text(text)
    with pytest.raises(InvalidArgumentError, match="not a job file"):
        folder.jobs()
    with pytest.raises(InvalidArgumentError, match="no job"):
        folder.find(f"../jobs/{job.id}")


@pytest.mark.parametrize("field", ["words", "submitted_unix_s", "process", "owner", "priority"])
def test_a_job_with_a_field_of_another_type_is_none(folder: JobFolder, field: str) -> None:
    job = new_job(("optimize",), Path.cwd())
    folder.write(job)
    file = folder.file(job.id)
    file.write_text(json.dumps({**json.loads(file.read_text()), field: [1]}))
    with pytest.raises(InvalidArgumentError, match=f"not a job file: .*{field}"):
        folder.jobs()
