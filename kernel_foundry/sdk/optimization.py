"""One optimisation as a coroutine: begin a run or go on with one, and hold it while its loop works.

`client.Foundry` and `kfoundry optimize` make one at a time, a suite several at once. The loop
itself is in `loop/evolution.py`.
"""

import contextlib
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.archive import DEFAULT_STRATEGY, Run, RunBudget, RunSpec, RunState
from kernel_foundry.domain.device_class import kept_to_class, ways_to_ask
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.material import Material
from kernel_foundry.domain.mechanisms import SHELF
from kernel_foundry.domain.model_limit import ModelLimit, limits_text
from kernel_foundry.domain.operator_list import operator_list
from kernel_foundry.domain.request import EvaluationLimits
from kernel_foundry.domain.spec_difference import another_spec, spec_difference
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import (
    InvalidArgumentError,
    LlmConfigurationError,
    RunHeldError,
    RunNotFoundError,
    TaskBeyondModelsError,
)
from kernel_foundry.ports import Archive, Evaluator, Generator
from kernel_foundry.process_identity import new_holder
from kernel_foundry.quantity_text import counted
from kernel_foundry.sdk.fleet.fleet import Fleet
from kernel_foundry.sdk.loop.budget import DEFAULT_EVALUATIONS, Budget
from kernel_foundry.sdk.loop.evolution import Evolution
from kernel_foundry.sdk.loop.lease import run_lease
from kernel_foundry.sdk.loop.progress import AdmissionStartEvent, Listener, RunResult
from kernel_foundry.sdk.services import Services
from kernel_foundry.sdk.shelf import shelf_kernels
from kernel_foundry.sdk.starting_point import starting_point, with_shelf
from kernel_foundry.sdk.sweep_files import sweep_writer

_EVALUATIONS_OF_A_GPU: Final = 2


async def optimize(
    services: Services,
    task: Task,
    *,
    language: Language,
    device: str,
    models: tuple[str, ...],
    budget: Budget,
    limits: EvaluationLimits,
    listener: Listener,
    run: str = "",
    strategy: str = DEFAULT_STRATEGY,
    seed: int = 0,
    in_flight: int = 2,
    without: tuple[str, ...] = (),
    start_from: Sequence[Path | str | Material] = (),
    judging: int | None = None,
) -> RunResult:
    """Begin a run and search until its budget ends it; see `client.Foundry.optimize`.

    `judging` is how many evaluations are made at once; None: as many as keep the devices busy.
    """
    # Before the admission, which takes its time.
    await services.generator.check_models(models)
    asked = {"task": task, "language": language, "strategy": strategy, "seed": seed}
    await _check_name(services.archive, run, {**asked, "without": without})
    judge = device or language.value
    devices = (await services.evaluator.capabilities()).devices
    if any(judge in ways_to_ask(device) for device in devices):
        listener(AdmissionStartEvent(task=task, budget=budget))
    # A run that cannot begin is not left in the store; the admission itself is cached.
    admission = await services.evaluator.admit(task, judge)
    judge = kept_to_class(judge, admission.device)
    able, left_out = await able_models(services.generator, models, admission)
    if not able:
        unable = ", ".join(limit.model for limit in left_out)
        raise TaskBeyondModelsError(limits_text(left_out), models=unable)
    begun = await starting_point(
        start_from,
        archive=services.archive,
        evaluator=services.evaluator,
        task=task,
        language=language,
        device=judge,
    )
    name = run or f"{task.name}-{time.strftime('%Y%m%d-%H%M%S')}"
    operators = operator_list(admission)
    if admission.admitted and SHELF not in without:
        kernels = await shelf_kernels(
            services.archive, operators, language=language, except_run=name
        )
        begun = await with_shelf(
            begun, kernels, evaluator=services.evaluator, task=task, device=judge
        )
    spec = RunSpec(
        name=name,
        task=task,
        language=language,
        device=judge,
        models=able,
        strategy=strategy,
        seed=seed,
        without=without,
        left_out=left_out,
        stop_at=budget.stop_at,
        materials=begun.materials,
        first_candidates=begun.candidates,
        operators=operators,
    )
    created = await services.archive.create_run(spec)
    try:
        return await _evolve(services, created, budget, limits, in_flight, listener, judging)
    except LlmConfigurationError:
        # Whoever mends an option has the name again. What was judged stays.
        if not (await services.archive.get_run(name)).evaluation_count:
            await services.archive.delete_run(name)
        raise


async def _check_name(archive: Archive, run: str, asked: dict[str, Any]) -> None:
    """Refuse the name of a run that is held or differs in `asked`; "" finds the archive there."""
    try:
        found = await archive.get_run(run)
    except RunNotFoundError:
        return
    if not run:
        return
    if difference := spec_difference(found.spec, replace(found.spec, **asked)):
        raise another_spec(run, difference)
    if found.state is RunState.RUNNING:
        raise RunHeldError(f"run {run} is being worked on: choose another name", run=run)


async def resume(
    services: Services,
    run: str,
    *,
    budget: Budget,
    limits: EvaluationLimits,
    listener: Listener,
    models: tuple[str, ...] = (),
    strategy: str = "",
    in_flight: int = 2,
    judging: int | None = None,
) -> RunResult:
    """Go on with a run as it was started; see `client.Foundry.resume`, and `optimize` above."""
    found = await services.archive.get_run(run)
    whole = _resumed(found, budget)
    if models:
        await services.generator.check_models(models)
    spec = replace(
        found.spec,
        models=models or found.spec.models,
        strategy=strategy or found.spec.strategy,
    )
    going_on = replace(found, spec=spec)
    listener(AdmissionStartEvent(task=spec.task, budget=whole, resumed=found))
    return await _evolve(services, going_on, whole, limits, in_flight, listener, judging)


async def able_models(
    generator: Generator, models: tuple[str, ...], admission: Admission
) -> tuple[tuple[str, ...], tuple[ModelLimit, ...]]:
    """Return which models can propose for an admitted task, and why the others cannot."""
    models = models or (await generator.list_models())[:1]
    limits = await generator.model_limits(models, admission) if admission.admitted else ()
    unable = {limit.model for limit in limits}
    return tuple(model for model in models if model not in unable), limits


async def _evolve(
    services: Services,
    run: Run,
    budget: Budget,
    limits: EvaluationLimits,
    in_flight: int,
    listener: Listener,
    judging: int | None,
) -> RunResult:
    # Before the lease, which an evaluator that is away would leave to run out.
    at_once = await _evaluations_at_once(services.evaluator, run.spec)
    judging = judging or at_once
    evolution = Evolution(
        evaluator=services.evaluator,
        archive=services.archive,
        generator=services.generator,
        run=run,
        budget=budget,
        limits=limits,
        in_flight=max(in_flight, judging),
        judging=judging,
        listener=sweep_writer(run.spec.name, listener),
    )
    async with run_lease(
        services.archive, run.spec.name, new_holder(), lambda: evolution.budget_left
    ) as finish:
        with _telling_of_fleet(services.evaluator, listener):
            return await evolution.run(finish)


def _telling_of_fleet(
    evaluator: Evaluator, listener: Listener
) -> contextlib.AbstractContextManager[None]:
    """Tell the listener of evaluators that go away and come back, where there are several."""
    return evaluator.telling(listener) if isinstance(evaluator, Fleet) else contextlib.nullcontext()


async def _evaluations_at_once(evaluator: Evaluator, spec: RunSpec) -> int:
    devices = (await evaluator.capabilities()).devices
    matching = [d for d in devices if spec.device in ways_to_ask(d)]
    return max(len(matching), 1) * evaluations_of_a_device(spec.language)


def evaluations_of_a_device(language: Language) -> int:
    """Return how many evaluations keep one device busy.

    On a GPU one candidate is built while another is measured; on the CPU both need its cores.
    """
    return _EVALUATIONS_OF_A_GPU if language is Language.CUDA else 1


def _resumed(run: Run, budget: Budget) -> Budget:
    limits = (budget.evaluations, budget.minutes, budget.cost_usd, budget.tokens)
    if run.state is RunState.FINISHED and not any(limits):
        raise InvalidArgumentError(
            f"run {run.spec.name} is finished, after {counted(run.evaluation_count, 'evaluation')}:"
            " give a new total (evaluations, USD or tokens), or minutes from now",
            field="budget",
            run=run.spec.name,
        )
    return budget.over(run.budget or RunBudget(evaluations=DEFAULT_EVALUATIONS))
