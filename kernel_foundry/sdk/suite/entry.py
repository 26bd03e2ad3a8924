"""One run of a suite: a task under one seed, and where that stands."""

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.archive import RunBudget
from kernel_foundry.domain.task import Task
from kernel_foundry.sdk.suite.plan import SuitePlan
from kernel_foundry.sdk.suite.sample_times import BaselineTimes, SampleTimes

_NOT_IN_RUN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]")


class EntryState(StrEnum):
    """Where one run of a suite stands."""

    WAITING = "waiting"
    BEGUN = "begun"
    """It has a device and a budget, and goes on when the suite does."""
    FINISHED = "finished"
    REFUSED = "refused"
    """The task is not admitted, or none of the models can do it."""
    FAILED = "failed"
    """It could not be run, for no fault of a candidate."""


@dataclass(slots=True, kw_only=True)
class RunProgress:
    """What is known of a run that is no longer waiting."""

    device: str = ""
    budget: RunBudget = field(default_factory=RunBudget)
    """What it was given when it was begun."""
    seconds: float = 0.0
    """Wall-clock seconds of work on it, without those of a process that was killed."""
    evaluations: int = 0
    archived: int = 0
    """Evaluations in the archive when it ended."""
    cost_usd: float = 0.0
    tokens: int = 0
    attempts: int = 0
    """Times that it failed for no fault of a candidate."""
    ended_by: str = ""
    """The `StopCause` of a run that ended; empty: not known."""
    bound_share: float = 0.0
    """Traffic bound over the time of its best kernel; 0: nothing passed."""
    rounds: int = 1
    """2 when it was given more after its share had ended it."""
    reason: str = ""
    """Why it was refused or failed; of a finished run: why more budget brought nothing."""
    degeneracies: tuple[str, ...] = ()
    """Why a trivial answer passes the task."""
    hardware: str = ""
    """Name of the device, as its driver has it; empty: the task is not admitted."""
    baselines: tuple[BaselineTimes, ...] = ()
    """As the admission measured them."""

    def note(self, admission: Admission) -> None:
        """Keep what an admission says of the task."""
        self.degeneracies = admission.degeneracies
        self.hardware = admission.device.name
        timed = next((w.baselines for w in admission.workloads if not w.held_out), ())
        self.baselines = tuple(
            BaselineTimes(name=b.name, times=SampleTimes.of(b.timing)) for b in timed
        )


@dataclass(slots=True, kw_only=True)
class SuiteEntry:
    """One run of a suite."""

    number: int
    """From 0, in the order in which runs are begun."""
    task: Task
    repeat: int
    """From 0."""
    seed: int
    run: str
    """Name of the run in the archive."""
    state: EntryState = EntryState.WAITING
    progress: RunProgress = field(default_factory=RunProgress)

    @property
    def has_ended(self) -> bool:
        """Whether nothing more is done for it."""
        return self.state not in (EntryState.WAITING, EntryState.BEGUN)

    @property
    def title(self) -> str:
        """The task's name, with the number of the repeat where there are several."""
        return self.task.name if not self.repeat else f"{self.task.name} ({self.repeat + 1})"


def entries_of(plan: SuitePlan) -> list[SuiteEntry]:
    """Return the runs of a plan, all waiting: every task once, then every task again."""
    names = _run_names(plan)
    count = len(plan.tasks)
    return [
        SuiteEntry(
            number=repeat * count + index,
            task=task,
            repeat=repeat,
            seed=plan.seed + repeat,
            run=names[index] if plan.repeats == 1 else f"{names[index]}.{repeat + 1}",
        )
        for repeat in range(plan.repeats)
        for index, task in enumerate(plan.tasks)
    ]


def _run_names(plan: SuitePlan) -> list[str]:
    """A name for each task, as runs may be called, and no two alike."""
    names: list[str] = []
    for index, task in enumerate(plan.tasks):
        name = f"{plan.name}.{_NOT_IN_RUN_NAMES.sub('-', task.name)}"
        names.append(name if name not in names else f"{name}-{index}")
    return names
