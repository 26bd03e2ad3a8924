"""What is printed before a run's task is admitted: which run, how much is left, what is done."""

from kernel_foundry.cli.live import EventLines
from kernel_foundry.domain.archive import Run, RunState
from kernel_foundry.sdk.loop.budget import Budget
from kernel_foundry.sdk.loop.progress import AdmissionStartEvent
from tests.domain_values import run_spec

_SPEC = run_spec("mine")


def _line(budget: Budget, resumed: Run | None = None) -> str:
    event = AdmissionStartEvent(task=_SPEC.task, budget=budget, resumed=resumed)
    ((line, _colour),) = EventLines().of(event)
    return line


def test_limits_are_said_and_what_comes_beyond_them() -> None:
    line = _line(Budget(evaluations=3, minutes=2.5))
    assert line.startswith("admitting t: ")
    assert "at most 3 evaluations, the leading candidates are measured again beyond that" in line
    assert line.endswith("; 2.5 min from now)")
    assert _line(Budget()).endswith("…")


def test_a_run_that_goes_on_is_named_with_what_it_has() -> None:
    run = Run(
        spec=_SPEC,
        state=RunState.INTERRUPTED,
        created_unix_s=0.0,
        evaluation_count=12,
        best_speedup=None,
        cost_usd=0.0,
    )
    line = _line(Budget(evaluations=40), run)
    assert line.startswith("run mine continues after 12 verdicts (at most 40 evaluations in all, ")
    assert "; admitting t: " in line
