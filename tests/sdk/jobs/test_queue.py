"""Jobs that wait for each other: who is next, and that no more begin than may."""

import fcntl
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from kernel_foundry.cli import jobs as jobs_command
from kernel_foundry.errors import InvalidArgumentError, PermissionDeniedError
from kernel_foundry.process_identity import new_holder
from kernel_foundry.sdk.jobs.job import Job, JobFolder, JobState
from kernel_foundry.sdk.jobs.queue import AT_ONCE_VARIABLE, begin, most_at_once, order
from kernel_foundry.sdk.jobs.submit import cancel, submit

NOW_S = time.time()


def job(number: int, owner: str = "ada", *, priority: int = 0, ran_s: float | None = None) -> Job:
    """A job that waits, or one that has run for so many seconds."""
    return Job(
        id=f"job-{number}",
        words=("evaluate", "absent.py", "absent.md"),
        folder="/",
        submitted_unix_s=NOW_S - 100 + number,
        process=new_holder(),
        owner=owner,
        priority=priority,
        began_unix_s=None if ran_s is None else NOW_S - ran_s,
        ended_unix_s=None if ran_s is None else NOW_S,
    )


def test_users_take_turns_by_the_time_of_their_jobs_and_priority_goes_first() -> None:
    jobs = [
        job(1, "ada", ran_s=50.0),
        replace(job(2, "bob", ran_s=20.0), ended_unix_s=None),  # it runs
        job(3, "ada"),
        job(4, "ada", priority=2),
        job(5, "bob"),
        job(6, "eve"),
        job(7, "bob"),
        replace(job(8, "eve", ran_s=1e6), ended_unix_s=NOW_S - 9e4),  # long ago
    ]
    waiting = [one.id for one in order(jobs, NOW_S)]
    assert waiting == ["job-4", "job-6", "job-5", "job-7", "job-3"]


def test_what_ran_before_the_last_day_counts_no_more() -> None:
    """Nor does a job whose process is gone: nobody knows how long it ran."""
    last_minute = replace(job(1, "ada", ran_s=1e6), ended_unix_s=NOW_S - 86_340.0)
    gone = replace(job(2, "eve", ran_s=1e6), ended_unix_s=None)
    gone = replace(gone, process=replace(new_holder(), process_start=1))
    assert gone.state is JobState.LOST
    jobs = [last_minute, gone, job(3, "bob", ran_s=90.0), job(4, "bob"), job(5, "ada")]
    waiting = [one.id for one in order([*jobs, job(6, "eve")], NOW_S)]
    assert waiting == ["job-6", "job-5", "job-4"]


def test_no_more_begin_than_may(tmp_path: Path) -> None:
    """And whoever is not next waits, however often it looks."""
    folder = JobFolder(tmp_path)
    first, second, third = (job(n) for n in (1, 2, 3))
    for one in (first, second, third):
        folder.write(one)
    assert begin(folder.file(second.id), second, 1) is None
    begun = begin(folder.file(first.id), first, 1)
    assert begun is not None
    assert folder.find(first.id).state is JobState.RUNNING
    assert begin(folder.file(second.id), second, 1) is None
    assert begin(folder.file(third.id), third, 2) is None
    assert begin(folder.file(second.id), second, 2) is not None
    fourth, fifth = job(4), job(5)
    for one in (fourth, fifth):
        folder.write(one)
    assert begin(folder.file(third.id), third, 1) is None  # more run than may
    assert begin(folder.file(third.id), third, None) is not None


def test_a_job_waits_while_another_s_file_is_damaged(tmp_path: Path) -> None:
    """That one may run. A file that is gone since the folder was listed is no job's."""
    folder = JobFolder(tmp_path)
    one, gone, damaged = job(1), folder.file("gone"), folder.file("damaged")
    folder.write(one)
    gone.symlink_to(tmp_path / "absent")
    damaged.write_text("{")
    assert begin(folder.file(one.id), one, 1) is None
    damaged.unlink()
    assert begin(folder.file(one.id), one, 1) is not None


@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5"])
def test_what_is_no_count_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=AT_ONCE_VARIABLE):
        most_at_once({AT_ONCE_VARIABLE: text})
    assert most_at_once({}) is None


def test_a_job_waits_in_its_own_process_and_can_be_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list shows its place; its command was never begun."""
    monkeypatch.setenv("KERNEL_FOUNDRY_DATA_DIR", str(tmp_path))
    monkeypatch.setenv(AT_ONCE_VARIABLE, "1")
    monkeypatch.setenv("KERNEL_FOUNDRY_USER", "bob")
    folder = JobFolder(tmp_path / "jobs")
    running = replace(job(1), began_unix_s=NOW_S)
    folder.write(running)
    waiting = submit(folder, ("clean", "--dry-run"), priority=3)
    while folder.find(waiting.id).state is JobState.STARTING:
        time.sleep(0.05)
    listed = CliRunner().invoke(
        jobs_command.command, ["list", "--mine"], standalone_mode=False, terminal_width=200
    )
    assert "waiting (1.)" in listed.stdout
    assert "bob" in listed.stdout
    assert running.id not in listed.stdout
    ended = cancel(folder, waiting.id)
    assert (ended.state, ended.began_unix_s) == (JobState.CANCELLED, None)
    assert folder.log(waiting.id).read_text() == ""
    assert os.getpid() == running.process.process_id  # which nothing was sent to


def test_a_job_that_is_cancelled_as_its_turn_comes_does_not_begin(tmp_path: Path) -> None:
    """It waits for the others' files meanwhile, which a signal does not end."""
    folder = JobFolder(tmp_path)
    descriptor = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    waiting = submit(folder, ("clean", "--dry-run"))
    while (one := folder.find(waiting.id)).process is None:
        time.sleep(0.05)
    os.kill(one.process.process_id, signal.SIGTERM)
    os.close(descriptor)
    while not (one := folder.find(waiting.id)).has_ended:
        time.sleep(0.05)
    assert (one.state, one.began_unix_s) == (JobState.CANCELLED, None)
    assert folder.log(waiting.id).read_text() == ""


def test_a_job_of_another_user_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNEL_FOUNDRY_USER", "bob")
    folder = JobFolder(tmp_path)
    for one in (job(1, "ada"), job(2, "ada", ran_s=1.0)):
        folder.write(one)
        with pytest.raises(PermissionDeniedError, match="belongs to ada"):
            cancel(folder, one.id)
        with pytest.raises(PermissionDeniedError, match="belongs to ada"):
            folder.delete(one)


def test_what_a_job_said_may_be_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file was removed: that is said, with the file's name."""
    monkeypatch.setenv("KERNEL_FOUNDRY_DATA_DIR", str(tmp_path))
    folder = JobFolder(tmp_path / "jobs")
    folder.write(job(1, ran_s=1.0))
    result = CliRunner().invoke(jobs_command.command, ["watch"], standalone_mode=False)
    assert isinstance(result.exception, InvalidArgumentError)
    assert str(folder.log("job-1")) in str(result.exception)
