"""Suites of the same tasks, tuned on different devices, crossed: `suite_matrix`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernel_foundry.ports import Evaluator
from kernel_foundry.sdk.suite.cross_hardware.crossing import CrossedWinner, Listener, cross_winners
from kernel_foundry.sdk.suite.cross_hardware.devices import MatrixDevice, devices_there
from kernel_foundry.sdk.suite.cross_hardware.table import MatrixRow, matrix_rows
from kernel_foundry.sdk.suite.cross_hardware.winners import TunedRuns, tuned_runs
from kernel_foundry.sdk.suite.kept_verdicts import KeptVerdicts
from kernel_foundry.sdk.suite.plan import SuitePlan
from kernel_foundry.sdk.suite.results import EntryResult
from kernel_foundry.sdk.suite.summary import by_task, counted


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutTasks:
    """Tasks of a suite that do not count: not ended, or passed by a trivial answer."""

    suite: str
    tasks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteMatrix:
    """Winners on the class that they were tuned on, and on the others."""

    devices: tuple[MatrixDevice, ...]
    """The columns: classes that winners were tuned on, then the others that are there."""
    rows: tuple[MatrixRow, ...]
    tuned: tuple[TunedRuns, ...]
    """The winners at home, one for each row."""
    crossed: tuple[CrossedWinner, ...]
    """The winners on the other classes in their language."""
    other_languages: tuple[MatrixDevice, ...]
    """Classes that are there and run none of the kernels."""
    without_winner: tuple[str, ...]
    """Suites in which no task that counts has one; they have no row."""
    left_out: tuple[LeftOutTasks, ...]
    """Of suites that have such tasks."""


async def suite_matrix(
    evaluator: Evaluator,
    suites: Sequence[tuple[SuitePlan, Sequence[EntryResult]]],
    kept: Mapping[str, KeptVerdicts],
    listener: Listener,
) -> SuiteMatrix:
    """Judge each winner on every other class of devices that the evaluator has; return all.

    Args:
        evaluator: Has the devices.
        suites: Each with its plan and its results.
        kept: By suite: verdicts of earlier calls, and where new ones are added.
        listener: Told of each winner that is done on a device.

    Raises:
        KernelFoundryError: the evaluator does not answer at all. What fails later is a reason.
    """
    specs = (await evaluator.capabilities()).devices
    rows = tuned_runs(suites, specs)
    there = devices_there(specs)
    left_out = [
        LeftOutTasks(
            suite=plan.name,
            tasks=tuple(name for name in by_task(results) if name not in counted(results)),
        )
        for plan, results in suites
    ]
    every = {device.name: device for device in (*(row.home for row in rows), *there)}
    languages = {row.home.language for row in rows}
    devices = tuple(d for d in every.values() if d.language in languages)
    crossed = await cross_winners(evaluator, rows, devices, kept, listener)
    return SuiteMatrix(
        devices=devices,
        rows=matrix_rows(rows, devices, crossed),
        tuned=rows,
        crossed=crossed,
        other_languages=tuple(d for d in every.values() if d.language not in languages),
        without_winner=tuple(
            plan.name for plan, _ in suites if plan.name not in {row.suite for row in rows}
        ),
        left_out=tuple(each for each in left_out if each.tasks),
    )
