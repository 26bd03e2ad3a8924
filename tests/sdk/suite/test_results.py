"""What a suite came to: its summary, its comparison with another one, its files and its report."""

import asyncio
import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernel_foundry.domain.archive import Elite
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.plain import to_json
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.task import Task, Workload
from kernel_foundry.sdk.suite.comparison import Change, compare
from kernel_foundry.sdk.suite.entry import EntryState
from kernel_foundry.sdk.suite.kernelbench_files import (
    baseline_names,
    baseline_times,
    eval_results,
    level_of,
)
from kernel_foundry.sdk.suite.results import FASTEST, EntryResult, results_of
from kernel_foundry.sdk.suite.side_by_side import side_by_side
from kernel_foundry.sdk.suite.suite import Suite
from kernel_foundry.sdk.suite.summary import summary_of
from kernel_foundry.sdk.suite.tables import csv_text, suite_object
from tests.sdk.suite.small_suite import TwoDevices, plan_of, services_in, work

NAMES = ("level1_19_ReLU", "level1_20_LeakyReLU", "level2_3_<script>x", "=odd")


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> tuple[Suite, tuple[EntryResult, ...]]:
    """A suite of four tasks and what it came to."""
    folder = tmp_path_factory.mktemp("suite")
    tasks = tuple(Task(name=name, reference=f"class Model: n = '{name}'\n") for name in NAMES)

    async def make() -> tuple[Suite, tuple[EntryResult, ...]]:
        services = services_in(folder)
        suite = await work(folder, plan_of(4, tasks=tasks), services)
        return suite, await results_of(services.archive, suite)

    return asyncio.run(make())


def unsolved(result: EntryResult, state: EntryState = EntryState.FINISHED) -> EntryResult:
    """Return the same run without a winner."""
    return EntryResult(entry=replace(result.entry, state=state))


def slower(result: EntryResult, factor: float) -> EntryResult:
    """Return the same run with a winner that takes `factor` times as long."""
    assert result.winner is not None
    verdict = result.winner.evaluation
    workloads = []
    for workload in verdict.workloads:
        assert workload.timing is not None
        low, high = (factor * bound for bound in workload.timing.ci95_ns)
        timing = replace(
            workload.timing, median_ns=factor * workload.timing.median_ns, ci95_ns=(low, high)
        )
        workloads.append(replace(workload, timing=timing))
    elite: Elite = replace(result.winner, evaluation=replace(verdict, workloads=tuple(workloads)))
    return replace(result, winner=elite)


def on_two_workloads(result: EntryResult, factor: float) -> EntryResult:
    """Return the same run of a task with a second workload, on which `factor` times as slow."""
    assert result.winner is not None
    (one,) = result.winner.evaluation.workloads
    (other,) = slower(result, factor).verdict.workloads  # type: ignore[union-attr]
    verdict = replace(result.winner.evaluation, workloads=(one, replace(other, workload="large")))
    task = result.entry.task
    task = replace(task, workloads=(*task.workloads, Workload(name="large")))
    entry = replace(result.entry, task=task)
    return replace(result, entry=entry, winner=replace(result.winner, evaluation=verdict))


def test_every_winner_is_counted(ended: tuple[Suite, tuple[EntryResult, ...]]) -> None:
    suite, results = ended
    found = summary_of(results)
    assert (found.tasks, found.unfinished, found.degenerate) == (4, (), ())
    assert found.correctness is not None
    assert found.correctness.value == 1.0
    assert [one.baseline for one in found.baselines] == [FASTEST, "eager"]
    assert found.evaluations == sum(e.progress.evaluations for e in suite.entries)
    assert found.own_share is not None
    assert found.own_share.value == 1.0


def test_workloads_are_counted_beside_tasks(
    ended: tuple[Suite, tuple[EntryResult, ...]],
) -> None:
    _, results = ended
    first = results[0].speedup(FASTEST)
    assert first is not None
    half_won = on_two_workloads(slower(results[0], first.value / 1.4), 2.0)  # 1.4 and 0.7
    lost = unsolved(on_two_workloads(results[1], 1.0))
    found = summary_of([half_won, lost])
    assert (found.tasks, found.workloads) == (2, 4)
    wins = {one.p: one.share.value for one in found.baselines[0].win}
    assert wins == {0.0: 0.5, 0.5: 0.5, 0.8: 0.25, 1.0: 0.25, 1.5: 0.0, 2.0: 0.0}
    rows = list(csv.DictReader(io.StringIO(csv_text([half_won, lost]))))
    assert [row["win_1"] for row in rows] == ["0.5", "0.0"]


def timed(result: EntryResult, *, share: float, bound_ns: float | None) -> EntryResult:
    """Return the run with a kernel at `share` of the way from a bound up to its baseline."""
    assert result.winner is not None
    (one,) = result.winner.evaluation.workloads
    assert one.timing is not None
    baseline_ns = one.baselines[0].timing.median_ns
    median_ns = (bound_ns or 0.0) + share * (baseline_ns - (bound_ns or 0.0))
    timing = replace(one.timing, median_ns=median_ns, ci95_ns=(median_ns, median_ns))
    estimate_ns = bound_ns and bound_ns / 2
    one = replace(one, timing=timing, traffic_bound_ns=bound_ns, arithmetic_estimate_ns=estimate_ns)
    verdict = replace(result.winner.evaluation, workloads=(one,))
    return replace(result, winner=replace(result.winner, evaluation=verdict))


def test_sol_scores_are_of_tasks_that_have_a_bound(
    ended: tuple[Suite, tuple[EntryResult, ...]],
) -> None:
    _, results = ended
    assert results[0].verdict is not None
    baseline_ns = results[0].verdict.workloads[0].baselines[0].timing.median_ns
    suite = [
        timed(results[0], share=1.0, bound_ns=100.0),  # as fast as the baseline
        timed(results[1], share=0.0, bound_ns=100.0),  # at the bound
        timed(results[2], share=1.0, bound_ns=None),
        unsolved(results[3]),
    ]
    found = summary_of(suite)
    assert found.sol_score is not None
    assert found.sol_score.value == pytest.approx((0.5 + 1.0 + 0.0) / 3)
    assert found.sol_scored == 3
    assert timed(results[0], share=1.0, bound_ns=baseline_ns).sol_score is None
    rows = list(csv.DictReader(io.StringIO(csv_text(suite))))
    assert [row["sol_score"] for row in rows[1:]] == ["1.0", "", "0.0"]


def test_what_did_not_end_or_says_little_is_apart(
    ended: tuple[Suite, tuple[EntryResult, ...]],
) -> None:
    _, results = ended
    begun = unsolved(results[1], EntryState.BEGUN)
    refused = unsolved(results[2], EntryState.REFUSED)
    trivial = replace(results[3].entry.progress, degeneracies=("zeros pass",))
    degenerate = replace(results[3], entry=replace(results[3].entry, progress=trivial))
    found = summary_of([results[0], begun, refused, degenerate])
    assert found.tasks == 2
    assert found.unfinished == (NAMES[1],)
    assert found.degenerate == (NAMES[3],)
    assert found.refused == 1
    assert found.correctness is not None
    assert found.correctness.value == 0.5


def test_the_interval_of_one_run_is_its_own(ended: tuple[Suite, tuple[EntryResult, ...]]) -> None:
    _, results = ended
    one = results[0]
    assert one.verdict is not None
    workloads = []
    for workload in one.verdict.workloads:
        assert workload.timing is not None
        median_ns = workload.timing.median_ns
        timing = replace(workload.timing, ci95_ns=(0.5 * median_ns, 2.0 * median_ns))
        workloads.append(replace(workload, timing=timing))
    assert one.winner is not None
    verdict = replace(one.winner.evaluation, workloads=tuple(workloads))
    wide = replace(one, winner=replace(one.winner, evaluation=verdict))
    mean = summary_of([wide, unsolved(results[1])]).baselines[0].geometric_mean
    own = wide.speedup(FASTEST)
    assert mean is not None
    assert own is not None
    assert (mean.value, mean.low, mean.high) == pytest.approx((own.value, own.low, own.high))
    assert mean.low < 0.9 * mean.value


def test_a_suite_is_no_faster_than_itself(ended: tuple[Suite, tuple[EntryResult, ...]]) -> None:
    _, results = ended
    found = compare("a", results, "b", results)
    assert found.count(Change.NO_CHANGE_SHOWN) == 4
    assert found.ratio is not None
    assert (found.ratio.low, found.ratio.high) == (1.0, 1.0)
    assert found.expected_by_chance == pytest.approx(0.2)


def test_changes_of_tasks_are_named(ended: tuple[Suite, tuple[EntryResult, ...]]) -> None:
    _, results = ended
    new = [slower(results[0], 2.0), unsolved(results[1]), slower(results[2], 0.5)]
    found = compare("a", results, "b", new)
    changes = [task.change for task in found.tasks]
    assert changes == [Change.SLOWER, Change.LOST, Change.FASTER]
    assert found.left_out == (NAMES[3],)
    assert found.ratio is not None
    assert found.ratio.value == pytest.approx(1.0)
    assert found.correctness is not None
    assert found.correctness.value == pytest.approx(-1 / 3)
    back = compare("b", new, "a", results)
    assert [task.change for task in back.tasks] == [Change.FASTER, Change.SOLVED, Change.SLOWER]


def test_suites_side_by_side_have_a_column_each(
    ended: tuple[Suite, tuple[EntryResult, ...]],
) -> None:
    suite, results = ended
    other = [slower(results[0], 2.0), unsolved(results[1])]
    found = side_by_side([(suite.plan, results), (replace(suite.plan, name="other"), other)])
    assert [column.suite for column in found.suites] == ["small", "other"]
    assert [row.task for row in found.tasks] == list(NAMES)
    first, second = found.tasks[0].cells
    assert first.speedup is not None
    assert second.speedup is not None
    assert second.speedup.value == pytest.approx(first.speedup.value / 2)
    assert (found.tasks[1].cells[1].counts, found.tasks[1].cells[1].speedup) == (True, None)
    assert not found.tasks[2].cells[1].counts
    assert found.suites[1].correctness is not None
    assert found.suites[1].correctness.value == 0.5


def test_kernelbenchs_files_give_kernelbenchs_fast_p(
    ended: tuple[Suite, tuple[EntryResult, ...]],
) -> None:
    _, results = ended
    level1 = [r for r in results if level_of(r.entry.task.name) == "1"]
    level1.append(unsolved(level1.pop()))
    samples = json.loads(to_json(eval_results(level1)))
    times = json.loads(to_json(baseline_times(level1, "eager")))["level1"]
    assert list(samples) == ["19", "20"]
    assert list(times) == ["19_ReLU.py", "20_LeakyReLU.py"]  # by position, as the samples
    assert {time["hardware"] for time in times.values()} == {"fake device"}
    assert {time["device"] for time in times.values()} <= {"fake:0", "fake:1"}
    assert samples["20"][0]["runtime"] == -1.0
    correct = np.array([of[0]["correctness"] for of in samples.values()])
    speedup = times["19_ReLU.py"]["mean"] / samples["19"][0]["runtime"]
    (_, eager) = summary_of(level1).baselines
    for fast in eager.fast:
        expected = np.mean(correct & (np.array([speedup, 0.0]) > fast.p))
        assert fast.share.value == pytest.approx(expected)


class Failing(TwoDevices):
    """Candidates of task t0 do not compile, those of the others are wrong."""

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        passed = await super().evaluate(request)
        outcome = EvaluationOutcome.WRONG_RESULT
        if request.task.name == "t0":
            outcome = EvaluationOutcome.COMPILE_ERROR
        return replace(passed, outcome=outcome, workloads=(), fitness=0.0, optimistic_fitness=0.0)


def test_a_sample_says_whether_any_kernel_compiled(tmp_path: Path) -> None:
    async def make() -> tuple[EntryResult, ...]:
        services = services_in(tmp_path, evaluator=Failing())
        return await results_of(services.archive, await work(tmp_path, plan_of(2), services))

    results = asyncio.run(make())
    samples = [samples[0] for samples in eval_results(results).values()]
    assert [one["compiled"] for one in samples] == [False, True]
    assert [one["correctness"] for one in samples] == [False, False]
    assert baseline_names(results) == ("eager",)
    times = baseline_times(results, "eager")["level1"]
    assert [time["mean"] for time in times.values()] == [1.0, 1.0]  # ms, of the admission


def test_tables_have_a_row_for_each_run_and_no_formulas(
    ended: tuple[Suite, tuple[EntryResult, ...]],
) -> None:
    suite, results = ended
    rows = list(csv.DictReader(io.StringIO(csv_text([*results[1:], unsolved(results[0])]))))
    assert [row["task"] for row in rows] == [*NAMES[1:3], "'=odd", NAMES[0]]
    assert float(rows[0]["speedup_fastest"]) > 0
    assert rows[3]["speedup_fastest"] == ""
    assert json.loads(to_json(suite_object(suite, results)))["summary"]["tasks"] == 4
