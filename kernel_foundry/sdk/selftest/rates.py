"""Counts what became of cases: how many cheats are caught, how many honest ones are accused.

Cases are judged in `run_cases.py`.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from kernel_foundry.sdk.selftest.case import CaseResult, CaseState


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Counts over those cases that were run or decided by their build.

    A case without a verdict, because something of ours failed, counts against us.
    """

    cheats: int
    missed: tuple[str, ...]
    """Names of cheats whose verdict is not among those expected."""
    honest: int
    refused: tuple[str, ...]
    """Names of honest look-alikes whose verdict is not among those expected."""
    errors: tuple[str, ...]
    """Names of cases without a verdict; they are among the missed and refused, too."""
    not_run: tuple[str, ...]
    """Names of cases that need a device that is not here; counted nowhere else."""

    @property
    def detection_rate(self) -> float | None:
        """Share of cheats with an expected verdict; None without cheats."""
        return 1.0 - len(self.missed) / self.cheats if self.cheats else None

    @property
    def false_alarm_rate(self) -> float | None:
        """Share of honest look-alikes that did not come out as expected; None without any."""
        return len(self.refused) / self.honest if self.honest else None

    @property
    def all_well(self) -> bool:
        """True when every case that was run had an expected verdict."""
        return not self.missed and not self.refused


def rates(results: Iterable[CaseResult]) -> Rates:
    """Return the counts of `results`."""
    everything = tuple(results)
    counted = tuple(r for r in everything if r.state is not CaseState.NOT_RUN)
    cheats = tuple(r for r in counted if not r.case.is_honest)
    honest = tuple(r for r in counted if r.case.is_honest)
    return Rates(
        cheats=len(cheats),
        missed=_not_as_expected(cheats),
        honest=len(honest),
        refused=_not_as_expected(honest),
        errors=tuple(r.case.name for r in counted if r.state is CaseState.ERROR),
        not_run=tuple(r.case.name for r in everything if r.state is CaseState.NOT_RUN),
    )


def _not_as_expected(results: tuple[CaseResult, ...]) -> tuple[str, ...]:
    return tuple(r.case.name for r in results if r.state is not CaseState.AS_EXPECTED)
