"""What a suite costs by itself: runs whose models and devices answer at once.

Everything that is stored is stored for real: the archive on SQLite, the suite's queue, one process.
Bars: 60 s of CPU time for 250 tasks of 40 evaluations; 3 % more wall time than the same runs one
after the other, with evaluations of 50 ms, a tenth of what a real one takes; memory that does not
grow with the number of tasks. Wall times hold the disk and other work on the host as well.

Run: python -m benchmarks.suite_overhead [--tasks 250] [--evaluations 40] [--out FILE]
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import re
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, Final

from archive_svc.archive import LocalArchive
from benchmarks.result_file import out_option, write_host_result
from kernel_foundry.domain.archive import RunBudget
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.mechanisms import SHELF
from kernel_foundry.domain.request import EvaluationLimits, ProposalOutcome
from kernel_foundry.domain.task import Task
from kernel_foundry.domain.traffic_bound import NEVER
from kernel_foundry.sdk.loop.budget import Budget
from kernel_foundry.sdk.optimization import evaluations_of_a_device, optimize
from kernel_foundry.sdk.services import Services
from kernel_foundry.sdk.suite.entry import EntryState, entries_of
from kernel_foundry.sdk.suite.plan import SuitePlan, WholeBudget
from kernel_foundry.sdk.suite.results import results_of
from kernel_foundry.sdk.suite.store.store import SuiteStore
from kernel_foundry.sdk.suite.suite_run import run_suite
from kernel_foundry.sdk.suite.summary import summary_of
from kernel_foundry.testing.evaluator import FakeEvaluator
from kernel_foundry.testing.generator import FakeGenerator

NAME = "suite_overhead"
_DEVICE: Final = "fake:0"
_MODELS: Final = ("fake",)
_EVALUATION_S: Final = (0.0, 0.05)
"""Of the evaluations of runs that are made both ways."""
_PAIRS: Final = 3


class _Forgetful(FakeGenerator):
    """Keeps no verdict: what a fake remembers is no memory of the suite's."""

    async def report(self, outcome: ProposalOutcome) -> None:
        """Let it go."""


def plan_of(tasks: int, evaluations: int) -> SuitePlan:
    """Return a plan of so many small tasks."""
    return SuitePlan(
        name="overhead",
        tasks=tuple(
            Task(name=f"task{i}", reference=f"class Model: n = {i}\n") for i in range(tasks)
        ),
        language=Language.SYCL,
        devices=(_DEVICE,),
        models=_MODELS,
        stop_at=NEVER,
        each=RunBudget(evaluations=evaluations),
        whole=WholeBudget(),
        limits=EvaluationLimits(),
    )


@asynccontextmanager
async def services_in(folder: Path, evaluation_s: float) -> AsyncIterator[Services]:
    """Services whose evaluations take so long."""
    archive = LocalArchive(f"sqlite:///{folder / 'runs.db'}")
    yield Services(
        evaluator=FakeEvaluator(lambda: asyncio.sleep(evaluation_s)),
        archive=archive,
        generator=_Forgetful(),
    )
    await archive.close()


async def as_suite(folder: Path, plan: SuitePlan, evaluation_s: float) -> dict[str, Any]:
    """Run a suite and read its numbers; return what that took."""
    async with services_in(folder, evaluation_s) as services:
        with closing(SuiteStore(folder / "suites.db")) as store:
            suite = store.create(plan)
            started_s, cpu_s = time.perf_counter(), time.process_time()
            await run_suite(services, store, suite, lambda _event: None)
            wall_s, cpu_s = time.perf_counter() - started_s, time.process_time() - cpu_s
            run_peak_mib = _resident_peak_mib()
            started_s = time.perf_counter()
            summary = summary_of(await results_of(services.archive, suite))
            show_s = time.perf_counter() - started_s
    return {
        "tasks": len(plan.tasks),
        "finished": suite.count(EntryState.FINISHED),
        "evaluations": summary.evaluations,
        "wall_s": wall_s,
        "cpu_s": cpu_s,
        "cpu_ms_per_evaluation": 1e3 * cpu_s / summary.evaluations,
        "resident_peak_mib": run_peak_mib,
        "show_s": show_s,
        "show_resident_peak_mib": _resident_peak_mib(),
    }


async def singly(folder: Path, plan: SuitePlan, evaluation_s: float) -> dict[str, Any]:
    """Make the runs of a suite one after the other without it; return what that took."""
    async with services_in(folder, evaluation_s) as services:
        started_s, cpu_s = time.perf_counter(), time.process_time()
        for entry in entries_of(plan):
            await optimize(
                services,
                entry.task,
                language=plan.language,
                device=_DEVICE,
                models=plan.models,
                budget=Budget(evaluations=plan.each.evaluations, stop_at=plan.stop_at),
                limits=plan.limits,
                run=entry.run,
                strategy=plan.strategy,
                seed=entry.seed,
                in_flight=plan.in_flight,
                without=(SHELF,),
                judging=evaluations_of_a_device(plan.language),
                listener=lambda _event: None,
            )
        wall_s, cpu_s = time.perf_counter() - started_s, time.process_time() - cpu_s
    return {"wall_s": wall_s, "cpu_s": cpu_s}


def beside_single_runs(plan: SuitePlan, evaluation_s: float) -> dict[str, Any]:
    """Return what a suite takes beside its runs made singly, in turns; shares are medians."""
    pairs = [
        (_alone(singly, plan, evaluation_s), _alone(as_suite, plan, evaluation_s))
        for _ in range(_PAIRS)
    ]

    def share(name: str) -> float:
        return float(statistics.median(suite[name] / single[name] - 1 for single, suite in pairs))

    more_s = statistics.median(suite["cpu_s"] - single["cpu_s"] for single, suite in pairs)
    return {
        "tasks": len(plan.tasks),
        "evaluation_ms": 1e3 * evaluation_s,
        "singly_wall_s": [single["wall_s"] for single, _ in pairs],
        "suite_wall_s": [suite["wall_s"] for _, suite in pairs],
        "wall_overhead_share": share("wall_s"),
        "cpu_overhead_share": share("cpu_s"),
        "cpu_overhead_ms_per_run": 1e3 * more_s / len(plan.tasks),
    }


def _alone(work: Callable[..., Any], plan: SuitePlan, evaluation_s: float) -> dict[str, Any]:
    """The figures of one measurement, in a process of its own: its memory is that of no other."""
    spawning = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawning) as pool:
        return pool.submit(_measured, work, plan, evaluation_s).result()


def _measured(work: Callable[..., Any], plan: SuitePlan, evaluation_s: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        found: dict[str, Any] = asyncio.run(work(Path(folder), plan, evaluation_s))
    return found


def _resident_peak_mib() -> float:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (kib,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
    return int(kib) / 1024


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=250)
    parser.add_argument("--fewer-tasks", type=int, default=50, help="of the smaller suite")
    parser.add_argument("--paired-tasks", type=int, default=20, help="of runs made both ways")
    parser.add_argument("--evaluations", type=int, default=40)
    out_option(parser, NAME)
    options = parser.parse_args()
    load = os.getloadavg()[0]
    paired = plan_of(options.paired_tasks, options.evaluations)
    beside = [beside_single_runs(paired, evaluation_s) for evaluation_s in _EVALUATION_S]
    fewer = _alone(as_suite, plan_of(options.fewer_tasks, options.evaluations), 0.0)
    measured = {
        "load_before": load,
        **_alone(as_suite, plan_of(options.tasks, options.evaluations), 0.0),
        "with_fewer_tasks": fewer,
        "beside_single_runs": beside,
    }
    write_host_result(options.out, NAME, measured)
    print(json.dumps(measured, indent=1))


if __name__ == "__main__":
    main()
