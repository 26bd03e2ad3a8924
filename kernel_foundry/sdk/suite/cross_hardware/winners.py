"""The runs of suites by the class of devices that they were tuned on: the rows of a matrix."""

from collections.abc import Sequence
from dataclasses import dataclass

from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.request import EvaluationLimits
from kernel_foundry.sdk.suite.cross_hardware.devices import MatrixDevice, home_of
from kernel_foundry.sdk.suite.plan import SuitePlan
from kernel_foundry.sdk.suite.results import EntryResult
from kernel_foundry.sdk.suite.summary import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedRuns:
    """The runs of one suite on one class of devices, of the tasks that count."""

    suite: str
    home: MatrixDevice
    limits: EvaluationLimits
    """Of the suite."""
    results: tuple[EntryResult, ...]

    @property
    def winners(self) -> tuple[EntryResult, ...]:
        """The runs that have one."""
        return tuple(result for result in self.results if result.winner is not None)


def tuned_runs(
    suites: Sequence[tuple[SuitePlan, Sequence[EntryResult]]], devices: Sequence[DeviceSpec]
) -> tuple[TunedRuns, ...]:
    """Return the runs of suites, for each suite and class of devices; a suite has mostly one.

    A run without a winner is of the class that others of its device are of. A suite without any
    winner has none.

    Args:
        suites: Each with its plan and its results.
        devices: Those that are there.
    """
    found = []
    for plan, results in suites:
        runs = [run for task in counted(results).values() for run in task]
        homes = [_home(run, plan, devices) for run in runs]
        of_asked = {
            run.entry.progress.device: home for run, home in zip(runs, homes, strict=True) if home
        }
        first = next(filter(None, homes), None)
        rows: dict[str, tuple[MatrixDevice, list[EntryResult]]] = {}
        for run, own in zip(runs, homes, strict=True):
            home = own or of_asked.get(run.entry.progress.device, first)
            if home is not None:
                rows.setdefault(home.name, (home, []))[1].append(run)
        found += [
            TunedRuns(suite=plan.name, home=home, limits=plan.limits, results=tuple(own_runs))
            for home, own_runs in rows.values()
        ]
    return tuple(found)


def _home(run: EntryResult, plan: SuitePlan, devices: Sequence[DeviceSpec]) -> MatrixDevice | None:
    if run.winner is None:
        return None
    return home_of(run.winner.evaluation, run.entry.progress.device, plan.language, devices)
