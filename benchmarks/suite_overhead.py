"""What a suite costs by itself: runs whose models and devices answer at once.

Everything that is stored is stored for real: the archive on SQLite, the suite's queue, one process.
Bar: 60 s of CPU time for 250 tasks of 40 evaluations; `wall_s` holds the disk as well.

Run: python -m benchmarks.suite_overhead [--tasks 250] [--evaluations 40] [--out FILE]
"""

import argparse
import asyncio
import json
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from archive_svc.archive import LocalArchive
from benchmarks.result_file import out_option, write_host_result
from kernel_foundry.domain.archive import RunBudget
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import EvaluationLimits
from kernel_foundry.domain.task import Task
from kernel_foundry.domain.traffic_bound import NEVER
from kernel_foundry.sdk.services import Services
from kernel_foundry.sdk.suite.entry import EntryState
from kernel_foundry.sdk.suite.plan import SuitePlan, WholeBudget
from kernel_foundry.sdk.suite.results import results_of
from kernel_foundry.sdk.suite.store.store import SuiteStore
from kernel_foundry.sdk.suite.suite_run import run_suite
from kernel_foundry.sdk.suite.summary import summary_of
from kernel_foundry.testing.evaluator import FakeEvaluator
from kernel_foundry.testing.generator import FakeGenerator

NAME = "suite_overhead"


def plan_of(tasks: int, evaluations: int) -> SuitePlan:
    """Return a plan of so many small tasks."""
    return SuitePlan(
        name="overhead",
        tasks=tuple(
            Task(name=f"task{i}", reference=f"class Model: n = {i}\n") for i in range(tasks)
        ),
        language=Language.SYCL,
        devices=("fake:0",),
        models=("fake",),
        stop_at=NEVER,
        each=RunBudget(evaluations=evaluations),
        whole=WholeBudget(),
        limits=EvaluationLimits(),
    )


async def measure(folder: Path, plan: SuitePlan) -> dict[str, Any]:
    """Run a suite and read its numbers; return what that took."""
    services = Services(
        evaluator=FakeEvaluator(),
        archive=LocalArchive(f"sqlite:///{folder / 'runs.db'}"),
        generator=FakeGenerator(),
    )
    with closing(SuiteStore(folder / "suites.db")) as store:
        suite = store.create(plan)
        started_s, cpu_s = time.perf_counter(), time.process_time()
        await run_suite(services, store, suite, lambda _event: None)
        wall_s, cpu_s = time.perf_counter() - started_s, time.process_time() - cpu_s
        started_s = time.perf_counter()
        results = await results_of(services.archive, suite)
        summary = summary_of(results)
        show_s = time.perf_counter() - started_s
    await services.archive.close()
    return {
        "tasks": len(plan.tasks),
        "finished": suite.count(EntryState.FINISHED),
        "evaluations": summary.evaluations,
        "wall_s": wall_s,
        "cpu_s": cpu_s,
        "cpu_ms_per_evaluation": 1e3 * cpu_s / summary.evaluations,
        "show_s": show_s,
    }


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=250)
    parser.add_argument("--evaluations", type=int, default=40)
    out_option(parser, NAME)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        plan = plan_of(options.tasks, options.evaluations)
        measured = asyncio.run(measure(Path(folder), plan))
    write_host_result(options.out, NAME, measured)
    print(json.dumps(measured, indent=1))


if __name__ == "__main__":
    main()
