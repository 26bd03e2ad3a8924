"""Winners of one class of devices on the others: judged once each, and counted as a suite's are."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator_svc.evaluator import LocalEvaluator
from kernel_foundry.cli.suite_matrix import matrix_object, show_matrix
from kernel_foundry.domain.archive import Elite
from kernel_foundry.domain.candidate import Candidate, KernelSource
from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.device_class import device_class
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome, Fact, Setting, Timing
from kernel_foundry.domain.fitness import correct_fitness
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.sweep import ConfigurationResult, SweepRequest
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import DeviceDriverError, TaskRefusedError
from kernel_foundry.plan.candidate_text import split
from kernel_foundry.ports import Evaluator
from kernel_foundry.sdk.suite.cross_hardware.crossing import (
    KEPT,
    MOST_FAILURES,
    CrossedWinner,
    Listener,
)
from kernel_foundry.sdk.suite.cross_hardware.devices import devices_there, home_of
from kernel_foundry.sdk.suite.cross_hardware.matrix import LeftOutTasks, SuiteMatrix, suite_matrix
from kernel_foundry.sdk.suite.entry import EntryState, RunProgress, SuiteEntry
from kernel_foundry.sdk.suite.kept_verdicts import KeptVerdicts
from kernel_foundry.sdk.suite.plan import SuitePlan
from kernel_foundry.sdk.suite.results import EntryResult
from kernel_foundry.testing.evaluator import FakeEvaluator
from tests.domain_values import CPU, H200, timing_of
from tests.sdk.fleet.hosts import Host, device, fleet_of
from tests.sdk.suite.small_suite import plan_of
from tests.sweep.conftest import LIMITS
from tests.sweep.conftest import TASK as REAL_TASK
from tests.sweep.conftest import candidate as real_candidate

BIG, SMALL = device("Acme H200"), device("Acme RTX 4090")
PLAN = 'TUNE = {"BLOCK": [128, 256]}\n\ndef launch(out):\n    pass'
BASELINE_NS = 1e6
Suites = Sequence[tuple[SuitePlan, Sequence[EntryResult]]]


def winner_of(task: Task, block: str, plan: str = PLAN) -> EvaluationRequest:
    """The request that judges a task's winner in a configuration."""
    source = KernelSource(language=Language.SYCL, device_code=f"// {task.name}", plan=plan)
    return EvaluationRequest(
        task=task,
        device="null:0",
        source=source,
        configuration=(Setting(name="BLOCK", value=block),),
    )


class Tuned(Host):
    """A device on which one value of BLOCK is twice as fast as the baseline, others half as fast.

    Args:
        spec: The device.
        best: The value.
    """

    def __init__(self, spec: DeviceSpec, best: str) -> None:
        super().__init__(spec)
        self._best = best
        self.swept: list[SweepRequest] = []

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        found = await super().evaluate(request)
        timed = tuple(
            replace(w, timing=self._timing(request.configuration)) for w in found.workloads
        )
        found = replace(found, workloads=timed)
        return replace(found, fitness=correct_fitness(found.speedup or 0.0))

    async def sweep(self, request: SweepRequest) -> AsyncGenerator[ConfigurationResult, None]:
        self.swept.append(request)
        async for result in super().sweep(request):
            timing = self._timing(result.configuration)
            yield replace(result, timings=tuple(replace(t, timing=timing) for t in result.timings))

    def _timing(self, configuration: tuple[Setting, ...]) -> Timing:
        is_best = configuration == (Setting(name="BLOCK", value=self._best),)
        return timing_of(BASELINE_NS / (2.0 if is_best else 0.5))


class Refusing(Tuned):
    """A device that is too small for t1."""

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        if request.task.name == "t1":
            raise TaskRefusedError("it does not fit the device's memory", reasons="memory")
        return await super().evaluate(request)


class Failing(Tuned):
    """A device that passes no winner of t0, and whose driver fails at all others."""

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        if request.task.name != "t0":
            self.judged.append(request)
            raise DeviceDriverError("the driver answers no more")
        found = await super().evaluate(request)
        return Evaluation(
            candidate=found.candidate,
            task=found.task,
            device=found.device,
            outcome=EvaluationOutcome.LAUNCH_ERROR,
        )


def hosts_of(other: type[Tuned] = Tuned) -> dict[str, Tuned]:
    return {"a:1": Tuned(BIG, "128"), "b:1": other(SMALL, "256")}


async def suite_of(
    host: Tuned, address: str, name: str, block: str, count: int
) -> tuple[SuitePlan, tuple[EntryResult, ...]]:
    """A suite whose winners have been judged on a device of the fleet; its last task has none."""
    plan = plan_of(count, name=name)
    results = []
    for number, task in enumerate(plan.tasks):
        progress = RunProgress(device=device_class(host.spec))
        entry = SuiteEntry(
            number=number, task=task, repeat=0, seed=0, run=f"{name}.{task.name}",
            state=EntryState.FINISHED, progress=progress,
        )  # fmt: skip
        if number == count - 1:
            results.append(EntryResult(entry=entry))
            continue
        request = winner_of(task, block)
        verdict = await host.evaluate(request)
        verdict = replace(verdict, device=f"{host.spec.id}@{address}")
        results.append(EntryResult(entry=entry, winner=elite_of(request.source, verdict)))
    host.judged.clear()
    return plan, tuple(results)


def elite_of(source: KernelSource, verdict: Evaluation) -> Elite:
    assert verdict.measures is not None
    candidate = Candidate(source=source)
    return Elite(
        candidate=candidate,
        evaluation=verdict,
        fitness=verdict.fitness,
        measures=verdict.measures,
    )


async def both_suites(hosts: dict[str, Tuned], count: int = 4) -> Suites:
    big = await suite_of(hosts["a:1"], "a:1", "big", "128", count)
    return [big, await suite_of(hosts["b:1"], "b:1", "small", "256", count)]


@contextmanager
def kept_in(folder: Path, *suites: str) -> Iterator[dict[str, KeptVerdicts]]:
    with ExitStack() as held:
        yield {s: held.enter_context(closing(KeptVerdicts(folder / s, KEPT))) for s in suites}


async def crossed(
    evaluator: Evaluator,
    suites: Suites,
    folder: Path,
    listener: Listener = lambda _one, _done, _total: None,
) -> SuiteMatrix:
    with kept_in(folder, *(plan.name for plan, _ in suites)) as kept:
        return await suite_matrix(evaluator, suites, kept, listener)


async def test_winners_run_elsewhere_as_they_are_and_re_swept(tmp_path: Path) -> None:
    """What was tuned on one device is slow on the other, until it is swept there."""
    hosts = hosts_of()
    suites = await both_suites(hosts)
    fleet = fleet_of(dict(hosts))
    told: list[tuple[int, int]] = []
    found = await crossed(fleet, suites, tmp_path, lambda _, n, of: told.append((n, of)))
    await fleet.close()
    assert told == [(n, 6) for n in range(1, 7)]
    assert [d.name for d in found.devices] == [device_class(BIG), device_class(SMALL)]
    assert [(row.suite, row.tuned_on) for row in found.rows] == [
        ("big", device_class(BIG)),
        ("small", device_class(SMALL)),
    ]
    home, away = found.rows[0].cells
    assert home.as_it_is is not None
    assert home.as_it_is.geometric_mean is not None
    assert home.as_it_is.geometric_mean.value == pytest.approx(2.0)
    assert home.re_swept is None
    assert away.as_it_is is not None
    assert away.re_swept is not None
    for numbers, speedup, above, over in (
        (away.as_it_is, 0.5, 0.0, 4.0),
        (away.re_swept, 2.0, 0.75, 1.0),
    ):
        assert numbers.tasks == 4
        assert numbers.correctness is not None
        assert numbers.correctness.value == 0.75
        assert numbers.above_1 is not None
        assert numbers.above_1.value == above
        assert numbers.geometric_mean is not None
        assert numbers.geometric_mean.value == pytest.approx(speedup)
        assert numbers.median is not None
        assert numbers.median.value == pytest.approx(speedup)
        assert numbers.own_over_it is not None
        assert numbers.own_over_it.value == pytest.approx(over)
        assert numbers.own_is_faster is not None
        assert numbers.own_is_faster.value == (1.0 if over > 1 else 0.0)
    assert {r.device for h in hosts.values() for r in h.judged} == {"null:0"}
    assert all(r.fresh_baselines for h in hosts.values() for r in h.judged)
    assert [len(h.swept) for h in hosts.values()] == [3, 3]
    assert all(one.re_swept and one.re_swept.swept_count == 2 for one in found.crossed)


async def test_a_matrix_goes_on_after_a_kill_and_judges_nothing_twice(tmp_path: Path) -> None:
    """The figures are those of a matrix that was never killed."""
    hosts = hosts_of()
    suites = await both_suites(hosts)
    fleet = fleet_of(dict(hosts))
    hosts["b:1"].opened.clear()

    def kill(_one: CrossedWinner, done: int, _total: int) -> None:
        if done == 3:  # all that ran on a; b is held in its first
            killed.cancel()

    killed = asyncio.create_task(crossed(fleet, suites, tmp_path, kill))
    with pytest.raises(asyncio.CancelledError):
        await killed
    assert [len(h.judged) for h in hosts.values()] == [6, 1]  # three winners of b, twice each
    for host in hosts.values():
        host.opened.set()
        host.judged.clear()
    whole = await crossed(fleet, suites, tmp_path)
    assert [len(h.judged) for h in hosts.values()] == [0, 6]
    again = await crossed(fleet, suites, tmp_path)
    await fleet.close()
    assert [len(h.judged) for h in hosts.values()] == [0, 6]
    assert again.rows == whole.rows
    assert not any(one.reason for one in whole.crossed)


async def test_a_sweep_that_was_cut_short_is_made_again_and_nothing_else(tmp_path: Path) -> None:
    hosts = hosts_of()
    (big, _) = await both_suites(hosts, count=2)

    begun = asyncio.Event()

    class Endless(Tuned):
        async def sweep(self, request: SweepRequest) -> AsyncGenerator[ConfigurationResult, None]:
            async for result in super().sweep(request):
                yield result
                begun.set()
                await asyncio.Event().wait()

    endless = Endless(SMALL, "256")
    fleet = fleet_of({"a:1": hosts["a:1"], "b:1": endless})
    killed = asyncio.create_task(crossed(fleet, [big], tmp_path))
    await begun.wait()
    killed.cancel()
    with pytest.raises(asyncio.CancelledError):
        await killed
    await fleet.close()
    assert len(endless.judged) == 1
    fleet = fleet_of(dict(hosts))
    found = await crossed(fleet, [big], tmp_path)
    await fleet.close()
    (judged,) = hosts["b:1"].judged
    assert judged.configuration == (Setting(name="BLOCK", value="256"),)
    assert found.crossed[0].as_it_is is not None


async def test_a_device_that_is_gone_shows_what_was_judged_on_it(tmp_path: Path) -> None:
    """Its column stays, of its own winners and of others' that are kept."""
    hosts = hosts_of()
    suites = await both_suites(hosts)
    fleet = fleet_of(dict(hosts))
    whole = await crossed(fleet, suites, tmp_path)
    await fleet.close()
    alone = fleet_of({"a:1": hosts["a:1"]})
    later = await crossed(alone, suites, tmp_path)
    new = await crossed(alone, suites, tmp_path / "new")
    await alone.close()
    assert later.rows[0].cells == whole.rows[0].cells
    assert [d.asked != "" for d in later.devices] == [True, False]
    cell = new.rows[0].cells[1]
    assert (cell.as_it_is, cell.re_swept, cell.not_judged) == (None, None, 3)
    reasons = {one.reason for one in new.crossed if one.on.name == device_class(SMALL)}
    assert reasons == {"the device is not there now"}


async def test_what_a_device_refuses_is_left_out_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hosts = hosts_of(Refusing)
    suites = [await suite_of(hosts["a:1"], "a:1", "big", "128", 4)]
    fleet = fleet_of(dict(hosts))
    found = await crossed(fleet, suites, tmp_path)
    await fleet.close()
    cell = found.rows[0].cells[1]
    assert cell.not_judged == 1
    assert cell.re_swept is not None
    assert cell.re_swept.tasks == 3
    reason = "it does not fit the device's memory"
    assert [one.reason for one in found.crossed] == ["", reason, ""]
    show_matrix(found)
    said = capsys.readouterr().out
    assert f"1 winner not judged on {SMALL.model_text}: {reason}\n" in said
    assert "0.50× (0.50–0.50)" in said  # as they are
    assert "2.00× (2.00–2.00)" in said  # re-swept
    winners = matrix_object(found)["winners"]
    assert [(w["task"], w["ran_on"], w["swept_count"]) for w in winners[3:]] == [
        ("t0", device_class(SMALL), 2),
        ("t1", device_class(SMALL), 0),
        ("t2", device_class(SMALL), 2),
    ]
    assert [w["reason"] for w in winners[:3]] == ["", "", ""]  # at home


async def test_a_winner_that_fails_elsewhere_counts_and_a_device_that_fails_is_left(
    tmp_path: Path,
) -> None:
    hosts = hosts_of(Failing)
    suites = [await suite_of(hosts["a:1"], "a:1", "big", "128", MOST_FAILURES + 4)]
    evaluator = OneClassEach(hosts)
    found = await crossed(evaluator, suites, tmp_path)
    cell = found.rows[0].cells[1]
    assert cell.as_it_is is not None
    assert cell.as_it_is.tasks == 2  # t0, and the task without a winner
    assert cell.as_it_is.correctness is not None
    assert cell.as_it_is.correctness.value == 0.0
    assert cell.as_it_is.geometric_mean is None
    assert len({r.task.name for r in hosts["b:1"].judged}) == 1 + MOST_FAILURES
    assert found.crossed[-1].reason.startswith(f"the device failed {MOST_FAILURES} times in a row")


class OneClassEach(FakeEvaluator):
    """One evaluator with the devices of several hosts, as fake:0, fake:1."""

    def __init__(self, hosts: dict[str, Tuned]) -> None:
        super().__init__()
        self._hosts = {device_class(host.spec): host for host in hosts.values()}
        self._ids = {f"null:0@{address}": host for address, host in hosts.items()}

    async def capabilities(self):  # type: ignore[no-untyped-def]
        found = await super().capabilities()
        specs = tuple(replace(host.spec, id=name) for name, host in self._ids.items())
        return replace(found, devices=specs)

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        host = self._hosts[request.device]
        return await host.evaluate(replace(request, device="null:0"))

    async def sweep(self, request: SweepRequest) -> AsyncGenerator[ConfigurationResult, None]:
        host = self._hosts[request.device]
        async for result in host.sweep(replace(request, device="null:0")):
            yield result


async def test_languages_are_not_crossed_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A CUDA device has no column for SYCL kernels alone, and a cell that says why beside both."""
    hosts = hosts_of()
    big = await suite_of(hosts["a:1"], "a:1", "big", "128", 2)
    hosts["c:1"] = Tuned(replace(H200, id="cuda:0"), "128")
    fleet = fleet_of(dict(hosts))
    alone = await crossed(fleet, [big], tmp_path)
    assert [d.language for d in alone.other_languages] == [Language.CUDA]
    assert [d.language for d in alone.devices] == [Language.SYCL] * 2
    plan, results = big
    cuda_class = device_class(H200)
    entry = replace(results[0].entry, progress=RunProgress(device=cuda_class))
    cuda = (
        replace(plan, name="cuda", language=Language.CUDA),
        (replace(results[0], entry=entry),),
    )
    both = await crossed(fleet, [big, cuda], tmp_path)
    await fleet.close()
    assert both.other_languages == ()
    cells = {cell.device: cell for cell in both.rows[0].cells}
    assert cells[cuda_class].as_it_is is None
    assert cells[cuda_class].reason == "sycl kernels do not run on cuda devices"
    assert both.rows[1].cells[0].reason == "cuda kernels do not run on sycl devices"
    assert hosts["c:1"].judged == []
    show_matrix(alone)
    shown = capsys.readouterr().out
    assert "cannot be crossed" in shown
    assert "left out: NVIDIA H200, driver 580 (cuda)" in shown
    show_matrix(both)
    assert "other language" in capsys.readouterr().out


async def test_a_suite_without_winners_and_tasks_that_do_not_count_are_named(
    tmp_path: Path,
) -> None:
    hosts = hosts_of()
    plan, results = await suite_of(hosts["a:1"], "a:1", "empty", "128", 2)
    begun = replace(results[0], entry=replace(results[0].entry, state=EntryState.BEGUN))
    found = await crossed(OneClassEach(hosts), [(plan, (begun, results[1]))], tmp_path)
    assert (found.rows, found.without_winner) == ((), ("empty",))
    assert found.left_out == (LeftOutTasks(suite="empty", tasks=("t0",)),)


def said(verdict: Evaluation, spec: DeviceSpec) -> Evaluation:
    return replace(verdict, evidence=(Fact(name="device", value=spec.model_text),))


async def test_the_home_of_a_winner_is_told_by_class_then_by_what_its_verdict_says() -> None:
    """An id alone is every evaluator's."""
    task = plan_of(1).tasks[0]
    verdict = await FakeEvaluator(device=CPU).evaluate(
        replace(winner_of(task, "128"), device="sycl:0")
    )
    other = replace(CPU, name="another CPU")

    def home(verdict: Evaluation, asked: str, *there: DeviceSpec) -> str:
        return home_of(verdict, asked, Language.SYCL, there).name

    assert home(verdict, "sycl", CPU) == device_class(CPU)
    assert home(said(verdict, CPU), "sycl", CPU, replace(other, id="sycl:1")) == device_class(CPU)
    assert home(said(verdict, CPU), "sycl", other) == f"sycl:0, {CPU.model_text}"
    assert home(said(verdict, other), "sycl:0", CPU, replace(other, id="sycl:0@b:1")) == (
        device_class(other)
    )
    assert home(verdict, device_class(other), CPU) == device_class(other)
    assert devices_there([CPU, replace(CPU, id="sycl:1")])[0].at_once == 2


@pytest.mark.sycl
@pytest.mark.slow
async def test_a_winner_of_a_device_that_is_gone_is_swept_on_a_real_one(
    tmp_path: Path, local_evaluator: Callable[[str], LocalEvaluator]
) -> None:
    source = split(real_candidate('TUNE = {"WG": [64, 128]}'))
    settings = (Setting(name="WG", value="128"),)
    evaluator = local_evaluator("sycl")
    verdict = await evaluator.evaluate(
        EvaluationRequest(task=REAL_TASK, device="sycl:0", source=source, configuration=settings)
    )
    assert verdict.passed, verdict.findings
    gone = said(verdict, replace(CPU, name="a CPU of another host"))
    plan = plan_of(1, name="gone", tasks=(REAL_TASK,), limits=LIMITS)
    entry = SuiteEntry(
        number=0, task=REAL_TASK, repeat=0, seed=0, run="gone.t", state=EntryState.FINISHED
    )
    suite = (plan, (EntryResult(entry=entry, winner=elite_of(source, gone)),))
    told: list[CrossedWinner] = []
    found = await crossed(evaluator, [suite], tmp_path, lambda one, *_: told.append(one))
    (one,) = told
    assert one.reason == ""
    assert one.as_it_is is not None
    assert one.as_it_is.configuration == settings
    assert one.re_swept is not None
    assert one.re_swept.passed
    assert one.re_swept.swept_count == 2
    assert [d.asked for d in found.devices] == ["", "sycl"]
    again = await crossed(evaluator, [suite], tmp_path)
    assert again.crossed[0].re_swept == one.re_swept
