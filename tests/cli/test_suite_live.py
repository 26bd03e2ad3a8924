"""What is shown of a suite while it goes on."""

import asyncio

import pytest

from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.cli.suite_live import LiveSuite, PlainSuite
from kernel_foundry.domain.archive import AddResult, AddStatus, Elite, Run, RunBudget, RunState
from kernel_foundry.domain.measures import Measures
from kernel_foundry.sdk.loop.budget import Budget, BudgetUse
from kernel_foundry.sdk.loop.progress import AdmissionEvent, Event, SweepEvent, VerdictEvent
from kernel_foundry.sdk.suite.entry import EntryState, SuiteEntry, entries_of
from kernel_foundry.sdk.suite.progress import EntryEvent, SuiteRunEvent, WaitEvent
from kernel_foundry.sdk.suite.suite import Suite
from kernel_foundry.testing.evaluator import FakeEvaluator
from tests.archive.conftest import make_candidate, make_evaluation
from tests.domain_values import run_spec
from tests.sdk.suite.small_suite import plan_of

EACH = RunBudget(evaluations=40)
CANDIDATE = make_candidate("fast")


def _suite() -> Suite:
    plan = plan_of(5, each=EACH)
    return Suite(id=1, plan=plan, entries=entries_of(plan), created_unix_s=0.0, used_seconds=60.0)


def _begun(entry: SuiteEntry, device: str) -> EntryEvent:
    entry.state, entry.progress.device, entry.progress.budget = EntryState.BEGUN, device, EACH
    return EntryEvent(entry=entry)


def _admitted(entry: SuiteEntry) -> Event:
    run = Run(
        spec=run_spec(),
        state=RunState.RUNNING,
        created_unix_s=0.0,
        evaluation_count=0,
        best_speedup=None,
        cost_usd=0.0,
    )
    return AdmissionEvent(
        run=run,
        admission=asyncio.run(FakeEvaluator().admit(entry.task)),
        budget=Budget(evaluations=40),
        spent=BudgetUse(),
    )


def _verdict(spent: BudgetUse) -> Event:
    evaluation = make_evaluation(CANDIDATE, median_ns=400.0)
    no_measures = Measures(memory=0, algorithm=0, synchronization=0)
    return VerdictEvent(
        candidate=CANDIDATE,
        evaluation=evaluation,
        result=AddResult(status=AddStatus.NEW, improvement=2.5, cell=None, is_best=True),
        spent=spent,
        best=Elite(candidate=CANDIDATE, evaluation=evaluation, fitness=2.5, measures=no_measures),
        is_promotion=False,
    )


def _shown(view: LiveSuite, capsys: pytest.CaptureFixture[str]) -> tuple[str, dict[str, str]]:
    """The head, and each row by its task."""
    PrintableConsole().print(view.table())
    head, _, rows = capsys.readouterr().out.partition("task")
    lines = [" ".join(line.split()) for line in rows.splitlines()]
    return " ".join(head.split()), {line.partition(" ")[0]: line for line in lines if line}


def test_the_table_tells_cost_and_time_left_of_runs_that_go_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = [1000.0]
    suite = _suite()
    view = LiveSuite(suite, lambda: now[0])
    first, second = suite.entries[:2]
    view.on(_begun(first, "fake:0"))
    view.on(_begun(second, "fake:1"))
    head, rows = _shown(view, capsys)
    assert head == "suite small: 0 of 5 runs ended, 2 begun, 3 waiting, 0.00 USD, 0:01:00"
    assert rows["t0"] == "t0 begun fake:0 0/40 – 0.00 0:00:00"

    now[0] += 30
    spent = BudgetUse(evaluations=10, seconds=30.0, cost_usd=0.25)
    view.on(SuiteRunEvent(entry=first, event=_admitted(first)))
    view.on(SuiteRunEvent(entry=first, event=_verdict(spent)))
    spent.cost_usd = 9.0  # the run goes on counting; this was not said yet
    head, rows = _shown(view, capsys)
    assert head == "suite small: 0 of 5 runs ended, 2 begun, 3 waiting, 0.25 USD, 0:01:30"
    assert rows["t0"] == "t0 begun fake:0 10/40 2.50× (2.50–2.50) 0.25 0:00:30 1:30 left"

    swept = BudgetUse(evaluations=20, seconds=30.0, cost_usd=0.3)
    event = SweepEvent(candidate=CANDIDATE, results=(), spent=swept)
    view.on(SuiteRunEvent(entry=first, event=event))
    assert _shown(view, capsys)[1]["t0"].endswith("20/40 2.50× (2.50–2.50) 0.30 0:00:30 0:30 left")

    first.state, first.progress.cost_usd, first.progress.seconds = EntryState.FINISHED, 0.5, 31.0
    view.on(EntryEvent(entry=first))
    head, rows = _shown(view, capsys)
    assert head.startswith("suite small: 1 of 5 runs ended, 1 begun, 3 waiting, 0.50 USD, 0:01:30")
    assert head.endswith("about 0:06:00 left")
    assert rows["t0"] == "t0 finished fake:0 20/40 2.50× (2.50–2.50) 0.50 0:00:31"


def test_the_table_says_what_a_run_waits_for(capsys: pytest.CaptureFixture[str]) -> None:
    suite = _suite()
    view = LiveSuite(suite)
    entry = suite.entries[0]
    view.on(_begun(entry, "fake:0"))
    view.on(WaitEvent(entry=entry, reason="the archive is away", seconds=4.0))
    PrintableConsole().print(view.table())
    assert "t0: the archive is away" in capsys.readouterr().out
    entry.state, entry.progress.reason = EntryState.REFUSED, "zeros pass"
    view.on(EntryEvent(entry=entry))
    PrintableConsole().print(view.table())
    said = capsys.readouterr().out
    assert "zeros pass" in said
    assert "the archive is away" not in said


def test_lines_count_what_ended(capsys: pytest.CaptureFixture[str]) -> None:
    suite = _suite()
    first, second = suite.entries[:2]
    with PlainSuite(suite) as view:
        for event in (_begun(first, "fake:0"), EntryEvent(entry=first)):
            view.on(event)
        view.on(SuiteRunEvent(entry=first, event=_verdict(BudgetUse(evaluations=40))))
        first.state, first.progress.evaluations = EntryState.FINISHED, 40
        view.on(EntryEvent(entry=first))
        second.state, second.progress.reason = EntryState.REFUSED, "zeros pass"
        view.on(EntryEvent(entry=second))
    assert capsys.readouterr().err.splitlines() == [
        "suite small: 0 of 5 runs ended, 5 waiting, 0.00 USD, 0:01:00",
        "[0/5] t0 begun on fake:0",
        "[1/5] t0 finished: 2.50× (2.50–2.50), 40 evaluations, 0.00 USD, 0 s",
        "[2/5] t1 refused: zeros pass",
    ]
