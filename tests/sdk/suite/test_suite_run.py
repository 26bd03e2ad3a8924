"""The runs of a suite: side by side on its devices, within its budget, once each."""

import asyncio
import contextlib
import json
import subprocess
import sys
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from archive_svc.archive import LocalArchive
from kernel_foundry.domain.account import ModelSpend, RunAccount
from kernel_foundry.domain.archive import RunBudget
from kernel_foundry.domain.device import Capabilities
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.material import Material
from kernel_foundry.domain.request import EvaluationRequest, Proposal, ProposalRequest, TokenUsage
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import (
    BackendUnavailableError,
    DeviceMemoryError,
    InvalidArgumentError,
    KernelFoundryError,
    ProcessLostError,
    QuotaExceededError,
    RunHeldError,
    ServiceUnavailableError,
    TaskInvalidError,
)
from kernel_foundry.process_identity import new_holder
from kernel_foundry.sdk.loop.progress import VerdictEvent
from kernel_foundry.sdk.suite import suite_run
from kernel_foundry.sdk.suite.entry import EntryState
from kernel_foundry.sdk.suite.plan import WholeBudget
from kernel_foundry.sdk.suite.progress import EntryEvent, SuiteEvent, SuiteRunEvent
from kernel_foundry.sdk.suite.results import results_of
from kernel_foundry.sdk.suite.starting_points import (
    check_start_from,
    published_in,
    starting_points,
)
from kernel_foundry.sdk.suite.store.store import SuiteStore
from kernel_foundry.sdk.suite.suite import Suite
from kernel_foundry.testing.evaluator import FakeEvaluator
from kernel_foundry.testing.generator import FakeGenerator
from tests.sdk.suite.small_suite import EVALUATIONS, TwoDevices, plan_of, services_in, work

TASKS = 5


def states(suite: Suite) -> list[str]:
    """Return the states of a suite's runs, in order."""
    return [entry.state.value for entry in suite.entries]


async def archived(folder: Path, run: str) -> list[str]:
    """Return the digests of the candidates that the search of a run judged, in order."""
    archive = LocalArchive(f"sqlite:///{folder / 'runs.db'}")
    found = await archive.evaluations(run, limit=1000)
    await archive.close()
    return [t.candidate.digest for t in found if not t.evaluation.is_final]


async def test_every_task_is_a_run_and_both_devices_work(tmp_path: Path) -> None:
    stood: list[EntryState] = []

    def listen(event: SuiteEvent) -> None:
        if isinstance(event, EntryEvent):
            stood.append(event.entry.state)

    suite = await work(tmp_path, plan_of(TASKS), services_in(tmp_path), listen)
    assert stood[:3] == [EntryState.BEGUN, EntryState.BEGUN, EntryState.FINISHED]
    assert states(suite) == ["finished"] * TASKS
    assert {entry.progress.device for entry in suite.entries} == {"fake:0", "fake:1"}
    for entry in suite.entries:
        assert len(await archived(tmp_path, entry.run)) == EVALUATIONS
        assert entry.progress.evaluations == EVALUATIONS


async def test_repeats_have_seeds_and_runs_of_their_own(tmp_path: Path) -> None:
    suite = await work(tmp_path, plan_of(2, repeats=2, seed=7), services_in(tmp_path))
    assert [(e.run, e.seed) for e in suite.entries] == [
        ("small.t0.1", 7),
        ("small.t1.1", 7),
        ("small.t0.2", 8),
        ("small.t1.2", 8),
    ]
    assert await archived(tmp_path, "small.t0.1") != await archived(tmp_path, "small.t0.2")


@pytest.mark.slow
def test_nothing_is_lost_or_judged_twice_when_a_suite_is_killed(tmp_path: Path) -> None:
    said: list[str] = []

    def start() -> subprocess.Popen[str]:
        program = [sys.executable, "-m", "tests.sdk.suite.small_suite", str(tmp_path)]
        return subprocess.Popen([*program, str(TASKS)], stdout=subprocess.PIPE, text=True)

    for verdicts in (3, 14):  # in the first runs, and once some have ended
        with start() as process:
            assert process.stdout is not None
            said += [process.stdout.readline() for _ in range(verdicts)]
            process.kill()
            said += process.stdout.readlines()
    with start() as process:
        assert process.stdout is not None
        said += process.stdout.readlines()
        assert process.wait() == 0

    async def stored() -> dict[str, list[str]]:
        return {f"small.t{i}": await archived(tmp_path, f"small.t{i}") for i in range(TASKS)}

    digests = asyncio.run(stored())
    for run, of_run in digests.items():
        assert len(of_run) == len(set(of_run)) == EVALUATIONS, run
    searched = [line.split()[:2] for line in said if line.endswith("False\n")]
    assert all(digest in digests[run] for run, digest in searched)
    store = SuiteStore(tmp_path / "suites.db")
    assert states(store.find("small")) == ["finished"] * TASKS
    store.close()


async def test_runs_begin_with_files_of_their_name_and_with_winners_of_a_suite(
    tmp_path: Path,
) -> None:
    await work(tmp_path, plan_of(2), services_in(tmp_path))
    files = tmp_path / "files"
    (files / "t1").mkdir(parents=True)
    (files / "t1" / "old.cu").write_text("// an old kernel\n")
    (files / "t1.py").write_text("the task itself\n")
    spec = {"language": "triton", "entry_point": "main.py::run"}
    sources = [{"path": name, "content": f"# {name}"} for name in ("main.py", "more.py")]
    (files / "t1.json").write_text(json.dumps({"spec": spec, "sources": sources}))
    plan = plan_of(2, name="more", seed=50, start_from=(str(files), "small"))
    suite = await work(tmp_path, plan, services_in(tmp_path))
    assert states(suite) == ["finished"] * 2
    archive = LocalArchive(f"sqlite:///{tmp_path / 'runs.db'}")
    specs = [(await archive.get_run(f"more.t{i}")).spec for i in range(2)]
    elites = {e.candidate.digest for e in await archive.elites("small.t1")}
    await archive.close()
    shown = [[m.name for m in spec.materials] for spec in specs]
    assert shown == [[], ["old.cu", "t1.json: main.py", "t1.json: more.py"]]
    begun = {candidate.digest for candidate in specs[1].first_candidates}
    assert begun
    assert begun <= elites


def test_runs_begin_with_published_kernels_of_their_task(tmp_path: Path) -> None:
    """Which are shown as they are; one that cannot be read is none."""
    lines = [
        {"level_id": 1, "task_id": number, "custom_code": code}
        for number, code in ((19, "class ModelNew: ...\n"), (20, "class ModelNew("))
    ]
    file = tmp_path / "h100.json"
    file.write_text("\n".join(map(json.dumps, lines)))
    with closing(SuiteStore(tmp_path / "suites.db")) as store:
        check_start_from((str(file),), store)
        published = published_in((str(file),))

        def begun(task: str) -> tuple[object, ...]:
            return starting_points((str(file),), task, store, published)

        (shown,) = begun("level1_19_ReLU")
        assert isinstance(shown, Material)
        assert (shown.name, shown.text) == ("h100.json, line 1: kernel.py", "class ModelNew: ...\n")
        assert begun("level1_20_GELU") == begun("level2_19_Fused") == ()


def test_what_is_neither_a_folder_nor_a_suite_is_refused(tmp_path: Path) -> None:
    store = SuiteStore(tmp_path / "suites.db")
    with pytest.raises(InvalidArgumentError, match="none is neither a folder nor published"):
        check_start_from(("none",), store)
    store.close()


class _Paid(FakeGenerator):
    """Asks a cent for each proposal."""

    async def propose(self, request: ProposalRequest) -> Proposal:
        made = await super().propose(request)
        usage = TokenUsage(
            model="fake", input_tokens=5, output_tokens=5, cost_usd=0.01, latency_ms=0.0
        )
        return Proposal(candidate=made.candidate, usage=(usage,))


async def test_a_suite_keeps_to_its_budget_and_goes_on_with_more(tmp_path: Path) -> None:
    plan = plan_of(4, whole=WholeBudget(cost_usd=0.2), each=RunBudget(evaluations=30))
    suite = await work(tmp_path, plan, services_in(tmp_path, generator=_Paid()))
    # Two proposals are in flight when a run's share is used up.
    assert suite.cost_usd <= 0.2 + 4 * 0.02
    shares = [entry.progress.budget.cost_usd for entry in suite.entries if entry.has_ended]
    assert max(share or 0.0 for share in shares) <= 0.2
    assert suite.entries[0].progress.budget.cost_usd == pytest.approx(0.05)


class _PaidByBook(_Paid):
    """Keeps books of what it asked for."""

    def __init__(self) -> None:
        super().__init__()
        self._asked: Counter[str] = Counter()

    async def propose(self, request: ProposalRequest) -> Proposal:
        self._asked[request.run] += 1
        return await super().propose(request)

    async def account(self, run: str) -> RunAccount:
        asked = self._asked[run]
        spend = ModelSpend(
            model="fake",
            requests=asked,
            retries=0,
            prompt_tokens=5 * asked,
            completion_tokens=5 * asked,
            usd=0.01 * asked,
        )
        return RunAccount(run=run, spend=(spend,))


class _KilledError(Exception):
    """Nobody handles it."""


class _AtTheBound(FakeEvaluator):
    """Every kernel of `t1` is at its traffic bound, and those of others are far from it."""

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        verdict = await super().evaluate(request)
        (result,) = verdict.workloads
        assert result.timing is not None
        bound_ns = result.timing.median_ns if request.task.name == "t1" else 1.0
        return replace(verdict, workloads=(replace(result, traffic_bound_ns=bound_ns),))


class _Failing(_AtTheBound):
    """Fails from when it is told how."""

    failure: KernelFoundryError | None = None

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        if self.failure is not None:
            raise self.failure
        return await super().evaluate(request)


async def test_what_a_run_at_its_bound_leaves_goes_to_one_that_may_gain(tmp_path: Path) -> None:
    """Also when the suite is killed while that run goes on."""
    services = services_in(tmp_path, evaluator=_AtTheBound(), generator=_Paid())
    plan = plan_of(2, whole=WholeBudget(cost_usd=0.6), each=RunBudget(evaluations=100))
    in_more: list[str] = []

    def listen(event: SuiteEvent) -> None:
        if isinstance(event, SuiteRunEvent) and event.entry.progress.rounds == 2:
            if isinstance(event.event, VerdictEvent):
                in_more.append(event.event.candidate.digest)
            if len(in_more) == 3:
                raise _KilledError

    with pytest.raises(_KilledError):
        await work(tmp_path, plan, services, listen)
    suite = await work(tmp_path, plan, services)
    first, second = (entry.progress for entry in suite.entries)
    assert (first.ended_by, second.ended_by) == ("cost", "traffic_bound")
    assert (first.rounds, second.rounds) == (2, 1)
    assert second.cost_usd < 0.2
    assert first.budget.cost_usd == pytest.approx(0.6 - second.cost_usd)
    assert 0.5 <= suite.cost_usd <= 0.6 + 4 * 0.02
    judged = await archived(tmp_path, "small.t0")
    assert len(judged) == len(set(judged)) > first.evaluations // 2


@pytest.mark.parametrize("error", [DeviceMemoryError("too large"), QuotaExceededError("used up")])
async def test_a_run_keeps_its_result_when_it_fails_with_more_budget(
    tmp_path: Path, error: KernelFoundryError
) -> None:
    evaluator = _Failing()
    services = services_in(tmp_path, evaluator=evaluator, generator=_PaidByBook())
    plan = plan_of(2, whole=WholeBudget(cost_usd=0.6), each=RunBudget(evaluations=100))
    first_costs: list[float] = []

    def listen(event: SuiteEvent) -> None:
        if isinstance(event, EntryEvent) and event.entry.progress.rounds == 2 and not first_costs:
            first_costs.append(event.entry.progress.cost_usd)
        if isinstance(event, SuiteRunEvent) and event.entry.progress.rounds == 2:
            evaluator.failure = error  # once its second share has paid for something

    with contextlib.suppress(QuotaExceededError):
        await work(tmp_path, plan, services, listen)
    with closing(SuiteStore(tmp_path / "suites.db")) as store:
        suite = store.find("small")
    first = suite.entries[0]
    goes_on = isinstance(error, QuotaExceededError)
    assert first.state is (EntryState.BEGUN if goes_on else EntryState.FINISHED)
    assert ("too large" in first.progress.reason) != goes_on
    assert goes_on or first.progress.cost_usd > first_costs[0]
    results = await results_of(services.archive, suite)
    assert results[0].winner is not None


async def test_runs_wait_when_the_budget_is_used_up(tmp_path: Path) -> None:
    plan = plan_of(4, whole=WholeBudget(tokens=3), each=RunBudget(evaluations=30))
    suite = await work(tmp_path, plan, services_in(tmp_path, generator=_Paid()))
    assert EntryState.WAITING.value in states(suite)
    assert not suite.has_ended


class _Picky(TwoDevices):
    """Fails in the ways that an evaluator may, by the task's name."""

    failures: ClassVar[dict[str, Exception]] = {
        "t0": TaskInvalidError("its reference raises"),
        "t1": DeviceMemoryError("too large"),
        "t2": ProcessLostError("the judge died"),
    }

    async def evaluate(self, request: EvaluationRequest):  # type: ignore[no-untyped-def]
        if request.task.name in self.failures:
            raise self.failures[request.task.name]
        return await super().evaluate(request)


async def test_one_task_that_cannot_be_run_ends_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suite_run, "_FIRST_PAUSE_S", 0.0)
    suite = await work(tmp_path, plan_of(4), services_in(tmp_path, evaluator=_Picky()))
    assert states(suite) == ["refused", "failed", "failed", "finished"]
    reasons = [entry.progress.reason for entry in suite.entries]
    assert reasons[0] == "its reference raises"
    assert reasons[2] == "the judge died"
    assert suite.entries[2].progress.attempts == suite_run.MOST_ATTEMPTS


async def test_what_failed_is_taken_up_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suite_run, "_FIRST_PAUSE_S", 0.0)
    await work(tmp_path, plan_of(4), services_in(tmp_path, evaluator=_Picky()))
    store = SuiteStore(tmp_path / "suites.db")
    suite = store.find("small")
    suite.begin_again()
    await suite_run.run_suite(services_in(tmp_path), store, suite, lambda _event: None)
    suite = store.find("small")
    store.close()
    assert states(suite) == ["finished"] * 4
    assert [entry.progress.reason for entry in suite.entries] == [""] * 4


async def test_an_interrupted_suite_is_free_and_goes_on(tmp_path: Path) -> None:
    is_under_way = asyncio.Event()

    def listen(event: SuiteEvent) -> None:
        if isinstance(event, SuiteRunEvent):
            is_under_way.set()

    services = services_in(tmp_path)
    task = asyncio.create_task(work(tmp_path, plan_of(3), services, listen))
    await is_under_way.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    suite = await work(tmp_path, plan_of(3), services)
    assert states(suite) == ["finished"] * 3
    for entry in suite.entries:
        assert len(await archived(tmp_path, entry.run)) == EVALUATIONS


class _Away(TwoDevices):
    """Is away at some of the calls, and for good when it is told so."""

    def __init__(self, calls: range) -> None:
        super().__init__()
        self._calls, self._made = calls, 0

    async def capabilities(self) -> Capabilities:
        self._require_presence()
        return await super().capabilities()

    async def evaluate(self, request: EvaluationRequest):  # type: ignore[no-untyped-def]
        self._require_presence()
        return await super().evaluate(request)

    def _require_presence(self) -> None:
        self._made += 1
        if self._made in self._calls:
            raise ServiceUnavailableError("no evaluator at this address")


async def test_a_service_that_comes_back_costs_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suite_run, "_FIRST_PAUSE_S", 0.0)
    away = _Away(range(10, 40))
    suite = await work(tmp_path, plan_of(3), services_in(tmp_path, evaluator=away))
    assert states(suite) == ["finished"] * 3
    for entry in suite.entries:
        assert len(await archived(tmp_path, entry.run)) == EVALUATIONS


async def test_a_service_that_stays_away_ends_the_suite_which_goes_on_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suite_run, "_FIRST_PAUSE_S", 0.0)
    monkeypatch.setattr(suite_run, "PATIENCE_SECONDS", 0.0)
    away = _Away(range(10, 1 << 30))
    with pytest.raises(ServiceUnavailableError, match="no evaluator"):
        await work(tmp_path, plan_of(3), services_in(tmp_path, evaluator=away))
    suite = await work(tmp_path, plan_of(3), services_in(tmp_path))
    assert states(suite) == ["finished"] * 3


async def test_an_absent_device_is_said_before_anything_begins(tmp_path: Path) -> None:
    with pytest.raises(BackendUnavailableError, match="no device cuda, only fake:0, fake:1"):
        await work(tmp_path, plan_of(2, devices=("cuda",)), services_in(tmp_path))


async def test_devices_of_another_language_are_refused_before_anything_begins(
    tmp_path: Path,
) -> None:
    plan = plan_of(2, language=Language.CUDA)  # by a name that does not tell
    with pytest.raises(InvalidArgumentError, match=r"fake:0 runs sycl, .* are cuda") as told:
        await work(tmp_path, plan, services_in(tmp_path))
    assert told.value.metadata["field"] == "devices"
    with closing(SuiteStore(tmp_path / "suites.db")) as store:
        assert states(store.find(plan.name)) == ["waiting"] * 2


async def test_two_processes_do_not_work_on_one_suite(tmp_path: Path) -> None:
    store = SuiteStore(tmp_path / "suites.db")
    store.hold(store.create(plan_of(2)), new_holder())
    with pytest.raises(RunHeldError, match="stop that process"):
        await work(tmp_path, plan_of(2), services_in(tmp_path))
    suite = store.find(plan_of(2).name)
    store.free(suite)
    store.hold(suite, replace(new_holder(), kernel="another/1"))  # before this host was restarted
    store.hold(suite, new_holder())
    store.close()


async def test_a_run_of_somebody_else_is_not_taken_for_the_suites(tmp_path: Path) -> None:
    await work(tmp_path, plan_of(1), services_in(tmp_path))
    (tmp_path / "suites.db").unlink()
    other = (Task(name="t0", reference="class Model: other = 1\n"),)
    suite = await work(tmp_path, plan_of(1, tasks=other), services_in(tmp_path))
    assert states(suite) == ["failed"]
    assert "another task" in suite.entries[0].progress.reason


async def test_a_suite_whose_queue_is_lost_takes_its_finished_runs(tmp_path: Path) -> None:
    await work(tmp_path, plan_of(2), services_in(tmp_path))
    (tmp_path / "suites.db").unlink()
    suite = await work(tmp_path, plan_of(2), services_in(tmp_path))
    assert states(suite) == ["finished"] * 2
    assert len(await archived(tmp_path, "small.t0")) == EVALUATIONS
