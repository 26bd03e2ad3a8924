"""`kfoundry jobs`: list, watch, cancel and delete submitted jobs."""

import shlex
import time
from collections.abc import Iterator
from typing import Any, Final

import click

from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.cli.name import as_called
from kernel_foundry.cli.options import json_option
from kernel_foundry.cli.output import print_json, print_text
from kernel_foundry.cli.table import plain_table, whole
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.paths import jobs_dir
from kernel_foundry.sdk.jobs.job import Job, JobFolder, JobState, user_name
from kernel_foundry.sdk.jobs.queue import order
from kernel_foundry.sdk.jobs.submit import cancel

_LOOK_S: Final = 0.2
_PIECE: Final = 1 << 16


@click.group()
def command() -> None:
    """List, watch, cancel and delete the jobs of `kfoundry submit`.

    \b
    kfoundry jobs list
    kfoundry jobs watch
    kfoundry jobs cancel 20261128-095012-1f0c
    """  # noqa: D301  a backspace keeps click from joining the lines


@command.command("list")
@click.option("--mine", is_flag=True, help="Only your own jobs.")
@json_option
def list_command(mine: bool, as_json: bool) -> int:
    """List all jobs, newest first, with the place in the queue of those that wait.

    \b
    kfoundry jobs list
    kfoundry jobs list --mine
    """  # noqa: D301  a backspace keeps click from joining the lines
    all_jobs = JobFolder(jobs_dir()).jobs()
    places = {job.id: place for place, job in enumerate(order(all_jobs, time.time()), 1)}
    jobs = [job for job in all_jobs if not mine or job.owner == user_name()]
    if as_json:
        print_json([_plain(job, places.get(job.id)) for job in jobs])
        return 0
    firsts = map(whole, ("job", "state", "of"))
    table = plain_table(*firsts, "priority", "submitted", "command")
    for job in jobs:
        at = time.strftime("%Y-%m-%d %H:%M", time.localtime(job.submitted_unix_s))
        place = f" ({places[job.id]}.)" if job.id in places else ""
        state, priority = f"{job.state.value}{place}", str(job.priority or "")
        table.add_row(job.id, state, job.owner, priority, at, shlex.join(job.words))
    makes_one = f"no jobs yet: `{as_called('submit optimize TASK')}` makes one"
    PrintableConsole().print(table if jobs else makes_one)
    return 0


@command.command("watch")
@click.argument("job", default="")
def watch(job: str) -> int:
    """Show the output of JOB (default: the newest) until it ends, and exit with its exit code.

    \b
    kfoundry jobs watch
    """  # noqa: D301  a backspace keeps click from joining the lines
    folder = JobFolder(jobs_dir())
    found = folder.find(job) if job else folder.newest()
    try:
        for line in _output_lines(folder, found.id):
            print_text(line)
    except KeyboardInterrupt:
        watch, cancel = (as_called(f"jobs {verb} {found.id}") for verb in ("watch", "cancel"))
        line = f"{found.id} is still running: `{watch}` shows its output, `{cancel}` ends it"
        print_text(line, err=True)
        raise
    ended = folder.find(found.id)
    print_text(f"{ended.id}: {ended.state.value}", err=True)
    return ended.exit_code if ended.exit_code is not None and ended.exit_code >= 0 else 1


@command.command("cancel")
@click.argument("job")
def cancel_command(job: str) -> int:
    """Stop JOB and its calls in flight, and wait until it has ended. JOB has no default.

    Verdicts are stored: `optimize --resume` and `suite run --resume` continue.

    \b
    kfoundry jobs cancel 20261128-095012-1f0c
    """  # noqa: D301  a backspace keeps click from joining the lines
    folder = JobFolder(jobs_dir())
    found = folder.find(job)
    print_text(f"{found.id}: waiting until its calls in flight have ended", err=True)
    ended = cancel(folder, found.id)
    print_text(f"{ended.id}: {ended.state.value}", err=True)
    return 0 if ended.has_ended else 1


@command.command("delete")
@click.argument("jobs", nargs=-1, required=True, metavar="JOB...")
def delete(jobs: tuple[str, ...]) -> int:
    """Delete jobs that have ended and their output; runs and suites stay.

    \b
    kfoundry jobs delete 20261128-095012-1f0c
    """  # noqa: D301  a backspace keeps click from joining the lines
    folder = JobFolder(jobs_dir())
    for job in jobs:
        folder.delete(folder.find(job))
        print_text(f"{job} is deleted", err=True)
    return 0


def _output_lines(folder: JobFolder, job_id: str) -> Iterator[str]:
    """Complete lines of a job's output, until it has ended and everything is read.

    Raises:
        InvalidArgumentError: the output is gone, or cannot be read.
    """
    while folder.find(job_id).state is JobState.STARTING:  # it may have no file yet
        time.sleep(_LOOK_S)
    begun = ""
    try:
        opened = folder.log(job_id).open(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InvalidArgumentError(
            f"the output of job {job_id} cannot be read: {folder.log(job_id)}: {error.strerror}",
            field="job",
        ) from error
    with opened as log:
        while True:
            has_ended = folder.find(job_id).has_ended  # before the last piece is read
            while piece := log.read(_PIECE):
                *lines, begun = (begun + piece).split("\n")
                yield from lines
            if has_ended:
                break
            time.sleep(_LOOK_S)
    if begun:
        yield begun


def _plain(job: Job, place: int | None) -> dict[str, Any]:
    return {
        "job": job.id,
        "state": job.state.value,
        "place": place,
        "owner": job.owner,
        "priority": job.priority,
        "command": list(job.words),
        "folder": job.folder,
        "submitted_unix_s": job.submitted_unix_s,
        "began_unix_s": job.began_unix_s,
        "ended_unix_s": job.ended_unix_s,
        "exit_code": job.exit_code,
    }
