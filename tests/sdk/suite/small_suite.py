"""A suite of small tasks on fakes; as a program it works on it to its end."""

import asyncio
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from archive_svc.archive import LocalArchive
from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.archive import RunBudget
from kernel_foundry.domain.device import Capabilities
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import EvaluationLimits
from kernel_foundry.domain.task import Task
from kernel_foundry.sdk.loop.progress import VerdictEvent
from kernel_foundry.sdk.services import Services
from kernel_foundry.sdk.suite.plan import SuitePlan, WholeBudget
from kernel_foundry.sdk.suite.progress import SuiteEvent, SuiteListener, SuiteRunEvent
from kernel_foundry.sdk.suite.store.store import SuiteStore
from kernel_foundry.sdk.suite.suite import Suite
from kernel_foundry.sdk.suite.suite_run import run_suite
from kernel_foundry.testing.evaluator import FakeEvaluator
from kernel_foundry.testing.generator import FakeGenerator

EVALUATIONS = 6


class TwoDevices(FakeEvaluator):
    async def capabilities(self) -> Capabilities:
        found = await super().capabilities()
        (one,) = found.devices
        return replace(found, devices=(one, replace(one, id="fake:1")))

    async def admit(self, task: Task, device: str = "") -> Admission:
        return await super().admit(task)


def plan_of(count: int, *, whole: WholeBudget | None = None, **fields: object) -> SuitePlan:
    tasks = tuple(Task(name=f"t{i}", reference=f"class Model: n = {i}\n") for i in range(count))
    plan = SuitePlan(
        name="small",
        tasks=tasks,
        language=Language.SYCL,
        devices=("fake",),
        models=("fake",),
        each=RunBudget(evaluations=EVALUATIONS),
        whole=whole or WholeBudget(),
        limits=EvaluationLimits(),
    )
    return replace(plan, **fields)  # type: ignore[arg-type]


def services_in(folder: Path, **others: object) -> Services:
    services = Services(
        evaluator=TwoDevices(),
        archive=LocalArchive(f"sqlite:///{folder / 'runs.db'}"),
        generator=FakeGenerator(),
    )
    return replace(services, **others)  # type: ignore[arg-type]


async def work(
    folder: Path,
    plan: SuitePlan,
    services: Services,
    listener: SuiteListener = lambda _event: None,
) -> Suite:
    """Work on the suite of `plan`, which is begun where it is not there yet."""
    with closing(SuiteStore(folder / "suites.db")) as store:
        suite = store.find(plan.name) if plan.name in store.names() else store.create(plan)
        await run_suite(services, store, suite, listener)
        return store.find(plan.name)


def _say(event: SuiteEvent) -> None:
    if isinstance(event, SuiteRunEvent) and isinstance(event.event, VerdictEvent):
        archived = event.event
        sys.stdout.write(f"{event.entry.run} {archived.candidate.digest} {archived.is_promotion}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    where = Path(sys.argv[1])
    asyncio.run(work(where, plan_of(int(sys.argv[2])), services_in(where), _say))
