"""Judges published kernels on the tasks that they are for, one after the other."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.finding import headline
from kernel_foundry.domain.foreign import ForeignSource
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import (
    InvalidArgumentError,
    KernelFoundryError,
    TaskInvalidError,
    TaskRefusedError,
)
from kernel_foundry.sdk.suite.entry import EntryState, SuiteEntry
from kernel_foundry.sdk.suite.kept_verdicts import KeptVerdicts
from kernel_foundry.sdk.suite.published_kernels import PublishedKernel, kernel_for
from kernel_foundry.sdk.suite.results import EntryResult, judged_result
from kernel_foundry.sdk.task_file import read_task

Judge = Callable[[Task, ForeignSource], Evaluation]
"""Gives the verdict on one kernel; raises for failures of our own."""

Admit = Callable[[Task], Admission]
"""Gives the admission of a task; raises for failures of our own."""


def read_tasks(path: Path, *, admit_degenerate: bool) -> tuple[Task, ...]:
    """Return the tasks of a folder of task files, or of one.

    Raises:
        InvalidArgumentError, TaskInvalidError: there is none, or one cannot be read.
    """
    found = sorted(path.glob("*.py")) if path.is_dir() else [path]
    if not found:
        raise InvalidArgumentError(f"{path}: no task file there", file=str(path))
    return tuple(read_task(file, admit_degenerate=admit_degenerate) for file in found)


def judge_published(
    tasks: Sequence[Task],
    kernels: Sequence[PublishedKernel],
    judge: Judge,
    listener: Callable[[EntryResult, Evaluation | None], None],
    kept: KeptVerdicts | None = None,
    admit: Admit | None = None,
) -> tuple[EntryResult, ...]:
    """Return the result of each task, in order; one without a kernel counts as not solved.

    Args:
        tasks: What is asked.
        kernels: What was published.
        judge: Gives verdicts.
        listener: Is told each result, with its verdict where there is one.
        kept: Verdicts of before, which are taken as they are, and where new ones are added.
        admit: Gives admissions, for the baselines of tasks without a kernel that passes; None:
            they are not asked for.
    """
    results = []
    for number, task in enumerate(tasks):
        result, verdict = _judged(number, task, kernel_for(task.name, kernels), judge, kept, admit)
        results.append(result)
        listener(result, verdict)
    return tuple(results)


def _judged(
    number: int,
    task: Task,
    kernel: PublishedKernel | None,
    judge: Judge,
    kept: KeptVerdicts | None,
    admit: Admit | None,
) -> tuple[EntryResult, Evaluation | None]:
    source = None if kernel is None else kernel.source
    digest = "" if source is None else source.digest
    known = kept.find(task, digest) if kept else None
    if known is not None:
        entry, verdict = known.entry, known.evaluation
        entry.number = number
    else:
        entry = SuiteEntry(number=number, task=task, repeat=0, seed=0, run="")
        verdict = _verdict(entry, source, judge, admit)
    if source is None:
        entry.progress.reason = "there is no kernel" if kernel is None else kernel.reason
    if kept and known is None:
        kept.keep(entry, digest, verdict)
    return judged_result(entry, verdict), verdict


def _verdict(
    entry: SuiteEntry, source: ForeignSource | None, judge: Judge, admit: Admit | None
) -> Evaluation | None:
    """The verdict on one kernel, if there is any; `entry` says what became of its task."""
    progress, verdict = entry.progress, None
    entry.state = EntryState.FINISHED
    started = time.monotonic()
    try:
        if admit is not None and (admission := admit(entry.task)).admitted:
            progress.note(admission)
        if source is not None:
            verdict = judge(entry.task, source)
    except (TaskInvalidError, TaskRefusedError) as error:
        entry.state, progress.reason = EntryState.REFUSED, error.message
    except KernelFoundryError as error:
        entry.state, progress.reason = EntryState.FAILED, error.message
    if verdict is not None:
        progress.device, progress.evaluations = verdict.device, 1
        if not verdict.passed:
            progress.reason = f"{verdict.outcome.value}: {headline(verdict.findings)}"
    progress.seconds = time.monotonic() - started
    return verdict
