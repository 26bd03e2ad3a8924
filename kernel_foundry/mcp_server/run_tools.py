"""Tools that start a search, ask about it and end it."""

import asyncio
import time
from pathlib import Path
from typing import Annotated, Any, Final

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import ToolAnnotations
from pydantic import Field

from kernel_foundry.domain.archive import DEFAULT_STRATEGY, RunState
from kernel_foundry.domain.candidate import LONGEST_CANDIDATE
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import EvaluationLimits
from kernel_foundry.domain.steering import LONGEST_HINT, SteeringAction
from kernel_foundry.errors import (
    AlreadyExistsError,
    InvalidArgumentError,
    KernelFoundryError,
    PermissionDeniedError,
    RunNotFoundError,
)
from kernel_foundry.mcp_server.allowance import Allowance
from kernel_foundry.mcp_server.arguments import DeviceName, LanguageName, RunName, TaskFile
from kernel_foundry.mcp_server.background_run import BackgroundRun
from kernel_foundry.mcp_server.refusal import tool_refusals
from kernel_foundry.mcp_server.run_answers import (
    RunStatus,
    RunWinner,
    SteeringAnswer,
    run_status,
    run_winner,
    steering_answer,
)
from kernel_foundry.mcp_server.server_parts import ServerParts
from kernel_foundry.mcp_server.task_tools import READS
from kernel_foundry.quantity_text import counted
from kernel_foundry.sdk.client import Foundry
from kernel_foundry.sdk.loop.budget import Budget
from kernel_foundry.sdk.loop.progress import Listener, RunResult
from kernel_foundry.sdk.loop.promotion import winner
from kernel_foundry.sdk.optimization import optimize
from kernel_foundry.sdk.services import Services
from kernel_foundry.sdk.steering import steering_events, steering_of
from kernel_foundry.sdk.task_file import read_task

_STORES: Final = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
)
"""It writes to the archive's store and removes nothing."""
_ENDS: Final = ToolAnnotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False
)
"""It ends or changes an active run."""
_ASKS_MODELS: Final = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=True
)
_RECIPES: Final = "recipes"
"""The offline generator, which costs nothing."""
_LONGEST_WAIT_S: Final = 60.0
_NOTICE_S: Final = 1.0
"""Seconds between progress notifications."""


def add_run_tools(server: MCPServer[Any], parts: ServerParts) -> None:
    """Add optimize_start, optimize_status, optimize_result and optimize_cancel."""

    @server.tool(annotations=_ASKS_MODELS)
    async def optimize_start(
        context: Context[Any, Any],
        task: TaskFile,
        language: LanguageName = "sycl",
        device: DeviceName = "",
        evaluations: Annotated[int, Field(ge=1, le=10_000)] = 40,
        minutes: Annotated[float, Field(gt=0, le=1440)] = 60.0,
        models: Annotated[
            list[Annotated[str, Field(max_length=200)]],
            Field(
                max_length=8,
                description="Empty: recipes, the offline generator, unless "
                "the server was started with --usd.",
            ),
        ] = [],  # noqa: B006
        start_from: Annotated[
            list[Annotated[str, Field(max_length=4096)]],
            Field(max_length=8, description="Candidate files below the root, to start from."),
        ] = [],  # noqa: B006
        run: Annotated[str, Field(max_length=200, description="Name; empty: a new one.")] = "",
    ) -> RunStatus:
        """Start a search for the fastest correct kernel of a task, and return at once.

        One at a time. It ends by its budget, by `optimize_cancel`, or with this server; what was
        judged is stored. Other tools go on beside it.
        """
        with tool_refusals():
            allowance = parts.allowances.of(context)
            started = await _start(
                parts,
                allowance,
                task=task,
                language=Language(language),
                device=device,
                budget=_budget(allowance, evaluations, minutes),
                models=_models(allowance, tuple(models)),
                start_from=tuple(parts.paths.file(name) for name in start_from),
                run=run,
            )
            return await _status(parts, context, started)

    @server.tool(annotations=READS)
    async def optimize_status(
        context: Context[Any, Any],
        run: RunName = "",
        wait_seconds: Annotated[
            float,
            Field(
                ge=0,
                le=_LONGEST_WAIT_S,
                description="Seconds to wait for a run of this server to end, with progress "
                "notifications.",
            ),
        ] = 0.0,
    ) -> RunStatus:
        """Say where a run of the store stands: verdicts so far, the best, why it ended."""
        with tool_refusals():
            ours = _ours(parts, run)
            if ours is not None and wait_seconds:
                await _wait(ours, context, wait_seconds)
            return await _status(parts, context, run)

    @server.tool(annotations=READS)
    async def optimize_result(context: Context[Any, Any], run: RunName = "") -> RunWinner:
        """Fetch the best candidate of a run of the store, also of one that goes on."""

        def work(foundry: Foundry) -> RunWinner:
            name = foundry.ask_archive(lambda a: a.get_run(run)).spec.name
            best = foundry.ask_archive(lambda a: winner(a, name))
            return run_winner(_asked(foundry, parts, name), best)

        with tool_refusals():
            return await parts.worker.call(context, work)

    @server.tool(annotations=_ENDS)
    async def optimize_cancel(context: Context[Any, Any], run: RunName) -> RunStatus:
        """End a run that goes on; what was judged is stored.

        Not one that another caller of this server began. A run that another process works on is
        asked to stop, and measures its winner again first.
        """
        with tool_refusals():
            if not run:
                raise RunNotFoundError("name the run to cancel", run=run)
            _require_own(parts, parts.allowances.of(context), run)
            ours = _ours(parts, run)
            if ours is not None:
                await ours.cancel()
            else:
                await parts.worker.call(context, lambda f: _stop(f, run))
            return await _status(parts, context, run)

    @server.tool(annotations=_STORES)
    async def optimize_steer(
        context: Context[Any, Any],
        run: RunName,
        action: SteeringAction,
        text: Annotated[
            str,
            Field(
                max_length=LONGEST_HINT,
                description="Of hint; of ban and release a trick that no proposal may use, as "
                'its code or lessons name it, or "lesson NUMBER".',
            ),
        ] = "",
        cell: Annotated[
            str,
            Field(
                max_length=16,
                description="Of pin, ban and release: MEMORY,ALGORITHM,SYNCHRONIZATION, such as "
                "2,1,0.",
            ),
        ] = "",
        candidate: Annotated[
            str, Field(max_length=LONGEST_CANDIDATE, description="Of inject: its text.")
        ] = "",
    ) -> SteeringAnswer:
        """Steer a run that goes on, in whichever process, from its next proposal on.

        pause, resume, stop; hint gives words for the next prompts; pin and ban a cell of the
        archive, or ban a trick; release takes a pin or a ban back, or all; inject has a candidate
        judged, by one of your evaluations. Not a run that another caller of this server began.
        """
        with tool_refusals():
            asked = steering_of(action, text=text, cell=cell, candidate=candidate)
            allowance = parts.allowances.of(context)

            def work(foundry: Foundry) -> SteeringAnswer:
                name = foundry.ask_archive(lambda a: a.get_run(run)).spec.name
                _require_own(parts, allowance, name)
                foundry.steer(run, asked)
                events = foundry.ask_archive(lambda a: steering_events(a, name))
                return steering_answer(foundry.ask_archive(lambda a: a.get_run(name)), events)

            evaluations = 1 if action is SteeringAction.INJECT else 0
            allowance.take(evaluations)
            try:
                return await parts.worker.call(context, work)
            except KernelFoundryError:
                allowance.give_back(evaluations)
                raise


async def _start(
    parts: ServerParts,
    allowance: Allowance,
    *,
    task: str,
    language: Language,
    device: str,
    budget: Budget,
    models: tuple[str, ...],
    start_from: tuple[Path, ...],
    run: str,
) -> str:
    active = next((one for one in parts.runs if not one.ended.done()), None)
    if active is not None:
        name = active.name or "of another call"
        raise AlreadyExistsError(
            f"run {name} is active: wait for its end, or cancel it", run=active.name
        )
    loaded = read_task(parts.paths.task(task))
    allowance.check_time()
    assert budget.evaluations is not None  # as `_budget` makes it
    allowance.take(budget.evaluations)

    async def search(services: Services, listener: Listener) -> RunResult:
        return await optimize(
            services,
            loaded,
            language=language,
            device=device,
            models=models,
            budget=budget,
            limits=EvaluationLimits(),
            listener=listener,
            run=run,
            strategy=DEFAULT_STRATEGY,
            start_from=start_from,
        )

    begun = BackgroundRun(parts.targets, search, allowance)
    parts.runs.append(begun)
    loop = asyncio.get_running_loop()
    begun.ended.add_done_callback(
        lambda _: loop.call_soon_threadsafe(_settle, allowance, begun, budget)
    )
    return await begun.begin()


def _settle(allowance: Allowance, run: BackgroundRun, budget: Budget) -> None:
    """Count what a run has used that ended, and give the rest back."""
    allowance.give_back((budget.evaluations or 0) - run.used.evaluations)
    allowance.used_seconds += run.seconds
    allowance.used_usd += run.used.cost_usd


def _models(allowance: Allowance, asked: tuple[str, ...]) -> tuple[str, ...]:
    """Return the models of a run: without money, only what costs none."""
    if allowance.usd_left > 0:
        return asked
    if any(model != _RECIPES for model in asked):
        raise InvalidArgumentError(
            f"models cost money, and callers of this server may spend none: leave `models` "
            f"out for {_RECIPES}, or its user may start it again with `--usd`",
            field="models",
        )
    return (_RECIPES,)


def _budget(allowance: Allowance, evaluations: int, minutes: float) -> Budget:
    # A cap of 0 USD would be none; without money only recipes are asked.
    return Budget(
        evaluations=evaluations,
        minutes=min(minutes, allowance.seconds_left / 60),
        cost_usd=allowance.usd_left or None,
    )


def _ours(parts: ServerParts, run: str) -> BackgroundRun | None:
    """Return the newest run of that name that this server started; "" is the newest of all."""
    named = (one for one in reversed(parts.runs) if one.name and run in ("", one.name))
    return next(named, None)


def _require_own(parts: ServerParts, allowance: Allowance, run: str) -> None:
    """Refuse a caller a run that another one began over this server.

    Raises:
        PermissionDeniedError: it did.
    """
    ours = _ours(parts, run)
    if ours is not None and ours.allowance is not allowance:
        raise PermissionDeniedError(
            f"another caller of this server started run {run}: only that caller may end or steer it"
        )


async def _wait(run: BackgroundRun, context: Context[Any, Any], seconds: float) -> None:
    until_s = time.monotonic() + seconds
    told = -1
    while (left_s := until_s - time.monotonic()) > 0 and not await run.wait(min(left_s, _NOTICE_S)):
        if run.used.evaluations != told:
            told = run.used.evaluations
            await context.report_progress(told, message=counted(told, "evaluation"))


def _stop(foundry: Foundry, run: str) -> None:
    """Ask whoever works on a run to stop; a stop of no loop would hold its resumption up."""
    found = foundry.ask_archive(lambda a: a.get_run(run))
    if found.state is not RunState.RUNNING:
        raise InvalidArgumentError(f"run {run} is {found.state.value}: nothing to end", field="run")
    foundry.steer(run, steering_of(SteeringAction.STOP))


async def _status(parts: ServerParts, context: Context[Any, Any], run: str) -> RunStatus:
    return await parts.worker.call(context, lambda f: _asked(f, parts, run))


def _asked(foundry: Foundry, parts: ServerParts, run: str) -> RunStatus:
    found = foundry.ask_archive(lambda a: a.get_run(run))
    name = found.spec.name
    stats = foundry.ask_archive(lambda a: a.stats(name))
    ours = _ours(parts, name)
    return run_status(found, stats, "" if ours is None else ours.failure)
