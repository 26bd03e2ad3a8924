"""Tools that look at a task and judge candidates of it."""

import asyncio
from collections.abc import Callable
from typing import Annotated, Any, Final

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import ToolAnnotations
from pydantic import Field

from kernel_foundry.domain.evaluation import Evaluation, Setting
from kernel_foundry.domain.profile import PROFILE_SECONDS
from kernel_foundry.domain.sweep import ConfigurationResult, best_of
from kernel_foundry.mcp_server.answers import (
    AdmissionAnswer,
    Devices,
    Verdict,
    admission_answer,
    devices_answer,
    verdict,
)
from kernel_foundry.mcp_server.arguments import CandidateText, DeviceName, TaskFile
from kernel_foundry.mcp_server.refusal import tool_refusals
from kernel_foundry.mcp_server.run_answers import SweepAnswer, sweep_answer
from kernel_foundry.mcp_server.server_parts import ServerParts
from kernel_foundry.sdk.client import Foundry
from kernel_foundry.sdk.verdict_text import configuration_text

READS: Final = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
JUDGES: Final = ToolAnnotations(read_only_hint=True, idempotent_hint=False, open_world_hint=False)
"""It changes no file; its times vary from call to call."""


Configuration = Annotated[
    dict[str, str], Field(max_length=64, description="TUNE values that replace their defaults.")
]


def add_task_tools(server: MCPServer[Any], parts: ServerParts) -> None:
    """Add devices, admit, build, evaluate, profile and sweep."""
    paths, worker, allowances = parts.paths, parts.worker, parts.allowances

    async def judged(
        context: Context[Any, Any], task: str, candidate: str, **options: Any
    ) -> Evaluation:
        """Judge a candidate as one evaluation; `options` are those of `Foundry.evaluate`."""
        path = paths.task(task)
        allowances.of(context).take(1)
        return await worker.call(context, lambda f: f.evaluate(path, candidate, **options))

    @server.tool(annotations=READS)
    async def devices(context: Context[Any, Any]) -> Devices:
        """Show the devices that candidates are judged on, what is missing and why."""
        with tool_refusals():
            return devices_answer(await worker.call(context, lambda f: f.capabilities()))

    @server.tool(annotations=READS)
    async def admit(
        context: Context[Any, Any], task: TaskFile, device: DeviceName = ""
    ) -> AdmissionAnswer:
        """Run a task's reference: names a plan may use, baselines, and reasons against it."""
        with tool_refusals():
            path = paths.task(task)
            return admission_answer(
                await worker.call(context, lambda f: f.admit(path, device=device))
            )

    @server.tool(annotations=JUDGES)
    async def build(
        context: Context[Any, Any],
        task: TaskFile,
        candidate: CandidateText,
        device: DeviceName = "",
        architecture: Annotated[
            str,
            Field(
                max_length=16,
                pattern=r"^(sm_\w+)?$",
                description="Build CUDA for this architecture, such as sm_90, without a GPU.",
            ),
        ] = "",
    ) -> Verdict:
        """Build a candidate and stop before its first launch; the outcome is BUILT when it does."""
        with tool_refusals():
            return verdict(
                await judged(
                    context,
                    task,
                    candidate,
                    device=device,
                    build_only=True,
                    architecture=architecture,
                )
            )

    @server.tool(annotations=JUDGES)
    async def evaluate(
        context: Context[Any, Any],
        task: TaskFile,
        candidate: CandidateText,
        device: DeviceName = "",
        configuration: Configuration = {},  # noqa: B006
    ) -> Verdict:
        """Judge a candidate: build, check against the reference, time against its baselines."""
        with tool_refusals():
            chosen = _settings(configuration)
            return verdict(
                await judged(context, task, candidate, device=device, configuration=chosen)
            )

    @server.tool(annotations=JUDGES)
    async def profile(
        context: Context[Any, Any],
        task: TaskFile,
        candidate: CandidateText,
        device: DeviceName = "",
        configuration: Configuration = {},  # noqa: B006
    ) -> Verdict:
        """Judge a candidate and show what its kernels do with the device, line by line.

        By ncu or perf_event; compute-sanitizer looks at a crash. Takes longer than `evaluate`.
        """
        with tool_refusals():
            evaluation = await judged(
                context,
                task,
                candidate,
                device=device,
                configuration=_settings(configuration),
                use_tools=True,
                profile_seconds=PROFILE_SECONDS,
            )
            return verdict(evaluation, candidate)

    @server.tool(annotations=JUDGES)
    async def sweep(
        context: Context[Any, Any],
        task: TaskFile,
        candidate: CandidateText,
        device: DeviceName = "",
        max_configurations: Annotated[int, Field(ge=1, le=1024)] = 64,
        seconds: Annotated[float, Field(gt=0, le=3600)] = 300.0,
    ) -> SweepAnswer:
        """Try the configurations of a candidate's TUNE, then judge the best as `evaluate` does.

        Each configuration that is tried counts as an evaluation, and the verdict as one more.
        """
        with tool_refusals():
            path = paths.task(task)
            allowance = allowances.of(context)
            allowance.take(max_configurations + 1)
            tell = _progress(context)
            tried = 0

            def listen(result: ConfigurationResult) -> None:
                nonlocal tried
                tried += 1
                tell(tried, result.total, configuration_text(result.configuration))

            def work(foundry: Foundry) -> SweepAnswer:
                results = foundry.sweep(
                    path,
                    candidate,
                    device=device,
                    max_configurations=max_configurations,
                    seconds=min(seconds, allowance.seconds_left),
                    listener=listen,
                )
                best = best_of(results)
                if best is None:
                    return sweep_answer(results, None)
                chosen = best.configuration
                whole = foundry.evaluate(path, candidate, device=device, configuration=chosen)
                return sweep_answer(results, whole)

            try:
                return await worker.call(context, work, gives_notice=False)
            finally:
                allowance.give_back(max_configurations - tried)


def _settings(configuration: dict[str, str]) -> tuple[Setting, ...]:
    return tuple(Setting(name=name, value=value) for name, value in sorted(configuration.items()))


def _progress(context: Context[Any, Any]) -> Callable[[int, int, str], None]:
    """Return what sends a notice of progress, from any thread."""
    loop = asyncio.get_running_loop()

    def tell(done: int, total: int, message: str) -> None:
        notice = context.report_progress(done, total, message)
        asyncio.run_coroutine_threadsafe(notice, loop)

    return tell
