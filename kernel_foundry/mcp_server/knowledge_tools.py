"""Tools that ask what earlier candidates taught."""

from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from kernel_foundry.domain.candidate import LONGEST_CANDIDATE
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.lesson import LONGEST_QUERY, LessonHit, LessonQuery
from kernel_foundry.domain.operator_list import operator_list
from kernel_foundry.mcp_server.answers import MOST_ITEMS
from kernel_foundry.mcp_server.arguments import LanguageName
from kernel_foundry.mcp_server.knowledge_answers import (
    FindingExplanation,
    LessonAnswer,
    VerifiedKernel,
    kernel_answer,
    lesson_answer,
)
from kernel_foundry.mcp_server.refusal import tool_refusals
from kernel_foundry.mcp_server.server_parts import ServerParts
from kernel_foundry.mcp_server.task_tools import READS
from kernel_foundry.sdk.client import Foundry
from kernel_foundry.sdk.local.generator import repair_advice
from kernel_foundry.sdk.shelf import ShelfKernel, shelf, shelf_kernels


def add_knowledge_tools(server: MCPServer[Any], parts: ServerParts) -> None:
    """Add explain_finding, search_lessons and verified_kernels."""
    paths, worker = parts.paths, parts.worker

    @server.tool(annotations=READS)
    async def explain_finding(
        context: Context[Any, Any],
        kind: FindingKind,
        language: LanguageName,
        limit: Annotated[int, Field(ge=1, le=20)] = 3,
    ) -> FindingExplanation:
        """Explain a kind of finding: its usual causes, the way to mend it, what helped before."""
        spoken = Language(language)
        query = LessonQuery(language=spoken, findings=(kind,))
        with tool_refusals():
            hits = await worker.call(context, lambda f: _lessons(f, query, limit))
            return FindingExplanation(
                kind=kind.value,
                advice=repair_advice(kind, spoken),
                lessons=[lesson_answer(hit) for hit in hits],
            )

    @server.tool(annotations=READS)
    async def search_lessons(
        context: Context[Any, Any],
        language: LanguageName,
        text: Annotated[str, Field(max_length=LONGEST_QUERY)] = "",
        code: Annotated[str, Field(max_length=LONGEST_CANDIDATE)] = "",
        findings: Annotated[list[FindingKind], Field(max_length=16)] = [],  # noqa: B006
        limit: Annotated[int, Field(ge=1, le=20)] = 5,
    ) -> list[LessonAnswer]:
        """Find what earlier candidates taught: for words, a kernel's code, kinds of findings."""
        if not (text or code or findings):
            raise ToolError("say what to search for: text, code or findings")
        query = LessonQuery(
            language=Language(language), findings=tuple(findings), text=text, code=code
        )
        with tool_refusals():
            hits = await worker.call(context, lambda f: _lessons(f, query, limit))
            return [lesson_answer(hit) for hit in hits]

    @server.tool(annotations=READS)
    async def verified_kernels(
        context: Context[Any, Any],
        language: LanguageName,
        task: Annotated[
            str,
            Field(description="Task file: only kernels for references like its own, best first."),
        ] = "",
        limit: Annotated[int, Field(ge=1, le=MOST_ITEMS)] = 5,
    ) -> list[VerifiedKernel]:
        """List winners of earlier runs that were measured twice and are fully trusted."""
        spoken = Language(language)
        with tool_refusals():
            if not task:
                kept = await worker.call(
                    context, lambda f: f.ask_archive(lambda a: shelf(a, language=spoken))
                )
                return [kernel_answer(kernel, is_compared=False) for kernel in kept[:limit]]
            path = paths.task(task)

            def alike(foundry: Foundry) -> tuple[ShelfKernel, ...]:
                operators = operator_list(foundry.admit(path))
                return foundry.ask_archive(
                    lambda a: shelf_kernels(a, operators, language=spoken, limit=limit)
                )

            found = await worker.call(context, alike)
            return [kernel_answer(kernel, is_compared=True) for kernel in found]


def _lessons(foundry: Foundry, query: LessonQuery, limit: int) -> tuple[LessonHit, ...]:
    return tuple(foundry.ask_experience(lambda e: e.search(query, limit=limit)))
