"""Tools that check a record and hand a winner out as a file."""

from typing import Annotated, Any, Final

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

from kernel_foundry.evidence.record import EvidenceRecord, is_program, read_records
from kernel_foundry.mcp_server.answers import MOST_ITEMS, shown
from kernel_foundry.mcp_server.arguments import DeviceName
from kernel_foundry.mcp_server.refusal import tool_refusals
from kernel_foundry.mcp_server.run_answers import (
    ExportAnswer,
    RecordCheck,
    exported_times,
    record_check,
)
from kernel_foundry.mcp_server.server_parts import ServerParts
from kernel_foundry.mcp_server.task_tools import JUDGES
from kernel_foundry.sdk.client import Foundry
from kernel_foundry.sdk.export.export import export_runs, slow_graphs, write_exported
from kernel_foundry.sdk.export.targets import TARGETS
from kernel_foundry.sdk.record_of_run import record_of_run

_WRITES: Final = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
)
"""It writes a new file and never replaces one."""


def add_record_tools(server: MCPServer[Any], parts: ServerParts) -> None:
    """Add verify and export."""
    paths, worker, allowances = parts.paths, parts.worker, parts.allowances

    @server.tool(annotations=JUDGES)
    async def verify(
        context: Context[Any, Any],
        record: Annotated[
            str, Field(description="Record file, or an exported Python file, below the root.")
        ] = "",
        run: Annotated[
            str, Field(max_length=200, description="Or the run whose winner is checked.")
        ] = "",
        device: DeviceName = "",
        run_again: Annotated[bool, Field(description="Judge it again, on the same seeds.")] = True,
    ) -> list[RecordCheck]:
        """Check evidence records: signature, numbers, and times by judging once more.

        A record's task is Python that the judge runs; a record that is not what was signed for is
        not run. Of an exported file the records are checked, the code is not.
        """
        if bool(record) == bool(run):
            raise ToolError("give either a record file or a run")
        with tool_refusals():
            path = paths.file(record) if record else None

            def found(foundry: Foundry) -> tuple[EvidenceRecord, ...]:
                return (record_of_run(foundry, run),) if path is None else read_records(path)

            records = await worker.call(context, found)
            if len(records) > MOST_ITEMS:
                raise ToolError(
                    f"the file has {len(records)} records, and at most {MOST_ITEMS} are checked in "
                    "one call: its user may run `kfoundry verify`"
                )
            if run_again:
                allowances.of(context).take(len(records))
            return [
                record_check(
                    one,
                    await worker.call(
                        context,
                        lambda f, r=one: f.verify(r, device=device, runs_again=run_again),  # type: ignore[misc]
                    ),
                    is_in_program=path is not None and is_program(path),
                )
                for one in records
            ]

    @server.tool(annotations=_WRITES)
    async def export(
        context: Context[Any, Any],
        out: Annotated[
            str, Field(description="File or folder to write, below the root; it must be new.")
        ],
        runs: Annotated[
            list[Annotated[str, Field(max_length=200)]],
            Field(max_length=8, description="Runs of one task; empty: the newest run."),
        ] = [],  # noqa: B006
        to: Annotated[str, Field(json_schema_extra={"enum": list(TARGETS)})] = "torch",
    ) -> ExportAnswer:
        """Write the winner of runs as a file or folder for the user's own program.

        It runs in a fresh, locked process against its reference first, and is not written when it
        is wrong or slower than judged. Counts as an evaluation for each run.
        """
        if to not in TARGETS:
            raise ToolError(f"no such target; there are {', '.join(TARGETS)}")
        with tool_refusals():
            path = paths.new(out)
            chosen = runs or [""]
            allowances.of(context).take(len(chosen))

            def work(foundry: Foundry) -> ExportAnswer:
                task = foundry.ask_archive(lambda a: a.get_run(chosen[0])).spec.task.name
                exported = export_runs(foundry, chosen, module=path.stem, target=to)
                write_exported(exported, path)
                warnings = [f"{w.name} is left out: {w.reason}" for w in exported.left_out]
                warnings += slow_graphs(exported)
                return ExportAnswer(
                    path=str(path.relative_to(paths.root)),
                    task=shown(task),
                    workloads=[exported_times(w) for w in exported.workloads[:MOST_ITEMS]],
                    warnings=[shown(text) for text in warnings[:MOST_ITEMS]],
                )

            return await worker.call(context, work)
