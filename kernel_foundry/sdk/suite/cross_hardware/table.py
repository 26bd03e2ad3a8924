"""The table of a matrix: a row for each class that winners were tuned on, a column for each class.

Source: the cross-hardware experiment of KernelFoundry (2603.12440), which reports, of kernels tuned
on a device over kernels tuned on another one, both run there, the share above 1 and the means.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.sdk.statistics.bootstrap import share
from kernel_foundry.sdk.statistics.estimate import Estimate
from kernel_foundry.sdk.suite.comparison import compare
from kernel_foundry.sdk.suite.cross_hardware.crossing import CrossedWinner
from kernel_foundry.sdk.suite.cross_hardware.devices import MatrixDevice
from kernel_foundry.sdk.suite.cross_hardware.winners import TunedRuns
from kernel_foundry.sdk.suite.numbers.fast_p import THRESHOLDS
from kernel_foundry.sdk.suite.results import EntryResult
from kernel_foundry.sdk.suite.summary import by_task, summary_of


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixNumbers:
    """Kernels on one class of devices; speed-ups are over the fastest baseline there."""

    tasks: int
    """What the shares are of: tasks without a winner are among them, and those where a winner was
    not judged are not."""
    correctness: Estimate | None
    above_1: Estimate | None
    """Share of tasks with a speed-up above 1."""
    geometric_mean: Estimate | None
    """Over the tasks that were solved; None where none was."""
    median: Estimate | None
    """The same."""
    own_over_it: Estimate | None = None
    """Geometric mean, over tasks that both solved, of the speed-up of the kernels that were tuned
    there over that of these: the paper's hardware speed-up. None on the own class, and where no
    suite was tuned there."""
    own_is_faster: Estimate | None = None
    """Share of these tasks where it is above 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixCell:
    """The kernels of one row on one class."""

    device: str
    """Name of the class."""
    as_it_is: MatrixNumbers | None
    """None where nothing was judged. The next one likewise, and on the own class."""
    re_swept: MatrixNumbers | None = None
    not_judged: int = 0
    """Winners that could not be judged here, or not swept."""
    reason: str = ""
    """Why there is nothing: the kernels are in another language."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRow:
    """The kernels of one suite that were tuned on one class."""

    suite: str
    tuned_on: str
    """Name of the class."""
    cells: tuple[MatrixCell, ...]
    """One for each class of the matrix, in its order."""


def matrix_rows(
    rows: Sequence[TunedRuns],
    devices: Sequence[MatrixDevice],
    crossed: Sequence[CrossedWinner],
) -> tuple[MatrixRow, ...]:
    """Return the table.

    Args:
        rows: The winners at home.
        devices: The columns.
        crossed: The winners on the others.
    """
    return tuple(
        MatrixRow(
            suite=row.suite,
            tuned_on=row.home.name,
            cells=tuple(
                _cell(row, device, [c for c in crossed if c.tuned is row and c.on is device], rows)
                for device in devices
            ),
        )
        for row in rows
    )


def _cell(
    row: TunedRuns,
    device: MatrixDevice,
    crossed: Sequence[CrossedWinner],
    rows: Sequence[TunedRuns],
) -> MatrixCell:
    if row.home.language is not device.language:
        own, other = row.home.language.value, device.language.value
        reason = f"{own} kernels do not run on {other} devices"
        return MatrixCell(device=device.name, as_it_is=None, reason=reason)
    if row.home.name == device.name:
        return MatrixCell(device=device.name, as_it_is=_numbers(row.results, ()))
    tuned_there = [r for other in rows if other.home.name == device.name for r in other.results]
    as_it_is = {c.result.entry.number: c.as_it_is for c in crossed}
    re_swept = {c.result.entry.number: c.re_swept for c in crossed}
    return MatrixCell(
        device=device.name,
        as_it_is=_numbers(_judged(row.results, as_it_is), tuned_there),
        re_swept=_numbers(_judged(row.results, re_swept), tuned_there),
        not_judged=sum(not (c.as_it_is and c.re_swept) for c in crossed),
    )


def _judged(
    results: Sequence[EntryResult], verdicts: dict[int, Evaluation | None]
) -> list[EntryResult]:
    """The runs with these verdicts, by number, in place of their own.

    A task that lacks one is left out; without any verdict there is nothing to say of the others.
    """
    if not any(verdicts.values()):
        return []
    found = []
    for runs in by_task(results).values():
        if all(run.winner is None or verdicts[run.entry.number] for run in runs):
            found += [_with(run, verdicts.get(run.entry.number)) for run in runs]
    return found


def _with(run: EntryResult, verdict: Evaluation | None) -> EntryResult:
    if run.winner is None or verdict is None or not verdict.passed:
        return EntryResult(entry=run.entry)
    return replace(run, winner=replace(run.winner, evaluation=verdict))


def _numbers(
    results: Sequence[EntryResult], tuned_there: Sequence[EntryResult]
) -> MatrixNumbers | None:
    found = summary_of(results)
    if not found.baselines:  # no task is left
        return None
    fastest = found.baselines[0]
    own_over_it, own_is_faster = _hardware_speedup(results, tuned_there)
    return MatrixNumbers(
        tasks=found.tasks,
        correctness=found.correctness,
        above_1=fastest.fast[THRESHOLDS.index(1.0)].share,
        geometric_mean=fastest.geometric_mean,
        median=fastest.median,
        own_over_it=own_over_it,
        own_is_faster=own_is_faster,
    )


def _hardware_speedup(
    results: Sequence[EntryResult], tuned_there: Sequence[EntryResult]
) -> tuple[Estimate | None, Estimate | None]:
    digests = {result.entry.task.digest for result in results}
    same = [result for result in tuned_there if result.entry.task.digest in digests]
    found = compare("", results, "", same)
    ratios = [task.ratio.value for task in found.tasks if task.ratio is not None]
    if not ratios:
        return None, None
    return found.ratio, share(sum(ratio > 1 for ratio in ratios), len(ratios))
