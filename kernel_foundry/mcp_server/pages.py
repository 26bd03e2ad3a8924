"""Resources: pages that explain, reports of runs, candidates of the store."""

from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError

from kernel_foundry.domain.archive import ArchivedEvaluation
from kernel_foundry.languages import language_named
from kernel_foundry.mcp_server.answers import MOST_ITEMS, Answer, interval
from kernel_foundry.mcp_server.arguments import LanguageName
from kernel_foundry.mcp_server.refusal import resource_refusals
from kernel_foundry.mcp_server.run_answers import RunStatus, run_status
from kernel_foundry.mcp_server.server_parts import ServerParts
from kernel_foundry.plan.candidate_text import render
from kernel_foundry.plan.prompt import short_reference
from kernel_foundry.printable import printable
from kernel_foundry.sdk.client import Foundry
from kernel_foundry.sdk.find_candidate import find_candidate


class EliteLine(Answer):
    """The best candidate of a cell of the archive."""

    candidate: str
    """Digest; the resource kernel-foundry://candidates/DIGEST is its text."""
    cell: list[int]
    """Levels of memory, algorithm and synchronisation, 0 to 3."""
    speedup: float | None
    speedup_interval: list[float] | None


class RunReport(Answer):
    """A run in one page."""

    status: RunStatus
    coverage: float
    """Share of the archive's cells with a correct candidate."""
    elites: list[EliteLine]
    """The fastest first."""


def add_pages(server: MCPServer[Any], parts: ServerParts) -> None:
    """Add the launch-plan page, the block reference, reports of runs and candidates."""

    @server.resource("kernel-foundry://launch-plan/{language}", mime_type="text/markdown")
    def launch_plan(language: LanguageName) -> str:
        """Explain the launch-plan language for kernels in sycl or cuda."""
        return short_reference(language)

    @server.resource("kernel-foundry://blocks/{language}", mime_type="text/markdown")
    def blocks(language: LanguageName) -> str:
        """Show the tested functions that device code may include, such as <kf/rows.hpp> in cuda."""
        text = language_named(language).blocks()
        if not text:
            raise ResourceNotFoundError(f"{language} has no blocks")
        return text

    @server.resource("kernel-foundry://runs/{run}/report", mime_type="application/json")
    async def run_report(run: str, context: Context[Any, Any]) -> RunReport:
        """Report on a run: how candidates ended, and the elites of its archive."""
        with resource_refusals():
            return await parts.worker.call(context, lambda f: _report(f, run))

    @server.resource("kernel-foundry://candidates/{candidate}", mime_type="text/markdown")
    async def candidate_text(candidate: str, context: Context[Any, Any]) -> str:
        """Show any evaluated candidate of the store by its digest or how that begins."""

        def found(foundry: Foundry) -> ArchivedEvaluation:
            return foundry.ask_archive(lambda a: find_candidate(a, candidate))

        with resource_refusals():
            return printable(render((await parts.worker.call(context, found)).candidate.source))


def _report(foundry: Foundry, run: str) -> RunReport:
    found = foundry.ask_archive(lambda a: a.get_run(run))
    name = found.spec.name
    stats = foundry.ask_archive(lambda a: a.stats(name))
    elites = foundry.ask_archive(lambda a: a.elites(name))
    fastest = sorted(elites, key=lambda e: e.evaluation.speedup or 0.0, reverse=True)
    return RunReport(
        status=run_status(found, stats),
        coverage=stats.coverage,
        elites=[
            EliteLine(
                candidate=elite.candidate.digest,
                cell=list(elite.measures.cell),
                speedup=elite.evaluation.speedup,
                speedup_interval=interval(elite.evaluation.speedup_interval),
            )
            for elite in fastest[:MOST_ITEMS]
        ],
    )
