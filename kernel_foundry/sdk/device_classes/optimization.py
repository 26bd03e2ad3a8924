"""One task on several classes of devices at once: a run for each class, with its own archive.

The runs share lessons, as all runs of a store do, and their best candidates
(`candidate_forwarder.py`). At the end each winner is judged on the other classes
(`cross_table.py`).
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kernel_foundry.domain.archive import DEFAULT_STRATEGY
from kernel_foundry.domain.request import EvaluationLimits
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import InvalidArgumentError, KernelFoundryError
from kernel_foundry.sdk.device_classes.candidate_forwarder import CandidateForwarder
from kernel_foundry.sdk.device_classes.class_choice import ClassChoice, choose_classes
from kernel_foundry.sdk.device_classes.cross_table import CrossVerdict, cross_table
from kernel_foundry.sdk.loop.budget import Budget
from kernel_foundry.sdk.loop.progress import Listener, RunResult
from kernel_foundry.sdk.optimization import optimize
from kernel_foundry.sdk.services import Services


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRun:
    """The run on one class."""

    choice: ClassChoice
    run: str
    """Its name, in the archive once its task was admitted there."""
    result: RunResult | None
    """None if it failed."""
    error: KernelFoundryError | None = None
    """Why it failed; the other runs went on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassesResult:
    """How the runs on all classes ended."""

    runs: tuple[ClassRun, ...]
    """In the order in which the classes were named."""
    cross: tuple[CrossVerdict, ...]
    """Winners on other classes of their language, and on their own."""

    def fastest_on(self, label: str) -> CrossVerdict | None:
        """Return which of the winners has the greatest speed-up on a class; None: none passed."""
        there = [c for c in self.cross if c.on == label and c.speedup is not None]
        return max(there, key=lambda c: c.speedup or 0.0, default=None)


async def optimize_classes(
    services: Services,
    task: Task,
    *,
    devices: Sequence[str],
    models: tuple[str, ...],
    budget: Budget,
    limits: EvaluationLimits,
    listener: Callable[[str], Listener],
    run: str = "",
    strategy: str = DEFAULT_STRATEGY,
    seed: int = 0,
    in_flight: int = 2,
    without: tuple[str, ...] = (),
    start_from: Sequence[Path | str] = (),
) -> ClassesResult:
    """Search on every class at once, until each run's budget ends it.

    Evaluations and minutes are each run's; money, tokens and requests are shared out evenly. A
    class whose run fails does not end the others.

    Args:
        services: The evaluator has all classes.
        task: The task.
        devices: Names of at least two classes, see `choose_classes`.
        models: As for `optimize`, and so are the arguments that are not listed here.
        budget: Of all runs together.
        limits: Deadlines of each evaluation.
        listener: Gives the listener of a class's run, by its label.
        run: Begins the names of the runs; behind it come a dot and the label.
        strategy: Of all runs.
        seed: Of the first run; the next ones have the next seeds, so that they propose other
            candidates.
        in_flight: Of each run.
        without: Of all runs.
        start_from: Of all runs.

    Raises:
        BackendUnavailableError: there is no device of a name.
        InvalidArgumentError: fewer than two classes are named, or one twice.
    """
    if len(devices) < 2:
        raise InvalidArgumentError(
            f"{len(devices)} classes of devices, expected at least two", field="device"
        )
    choices = choose_classes((await services.evaluator.capabilities()).devices, devices)
    name = run or f"{task.name}-{time.strftime('%Y%m%d-%H%M%S')}"
    share = _share(budget, len(choices))
    sharing = CandidateForwarder(services.archive)

    async def on_class(number: int, choice: ClassChoice) -> ClassRun:
        own_name = f"{name}.{choice.label}"
        try:
            result = await optimize(
                services,
                task,
                language=choice.language,
                device=choice.device,
                models=models,
                budget=share,
                limits=limits,
                listener=sharing.listener(listener(choice.label)),
                run=own_name,
                strategy=strategy,
                seed=seed + number,
                in_flight=in_flight,
                without=without,
                start_from=start_from,
            )
        except KernelFoundryError as error:
            return ClassRun(choice=choice, run=own_name, result=None, error=error)
        return ClassRun(choice=choice, run=own_name, result=result)

    async with asyncio.TaskGroup() as group:
        passing_on = group.create_task(sharing.work())
        tasks = [group.create_task(on_class(n, choice)) for n, choice in enumerate(choices)]
        await asyncio.gather(*tasks)
        passing_on.cancel()
    runs = tuple(task.result() for task in tasks)
    winners = [(r.choice, r.result.winner) for r in runs if r.result and r.result.winner]
    cross = await cross_table(services.evaluator, task, winners, limits)
    return ClassesResult(runs=runs, cross=cross)


def _share(budget: Budget, count: int) -> Budget:
    per_minute = budget.requests_per_minute
    return replace(
        budget,
        cost_usd=None if budget.cost_usd is None else budget.cost_usd / count,
        tokens=None if budget.tokens is None else budget.tokens // count,
        requests_per_minute=None if per_minute is None else max(per_minute // count, 1),
    )
