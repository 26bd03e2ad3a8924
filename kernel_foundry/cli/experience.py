"""`kfoundry experience`: list and search lessons from earlier candidates.

The commands that add and copy lessons are in `experience_transfer`.
"""

import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from textwrap import shorten

import click
from rich.table import Table
from rich.text import Text

from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.cli.experience_kernels import kernels
from kernel_foundry.cli.experience_transfer import (
    add,
    all_lessons,
    export_command,
    import_command,
)
from kernel_foundry.cli.options import generator_option, json_option, language_option
from kernel_foundry.cli.output import print_json
from kernel_foundry.domain.candidate import LONGEST_CANDIDATE
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.lesson import Lesson, LessonHit, LessonQuery
from kernel_foundry.domain.plain import to_plain
from kernel_foundry.ports import Experience
from kernel_foundry.printable import printable
from kernel_foundry.quantity_text import counted
from kernel_foundry.sdk.client import Foundry, connect
from kernel_foundry.sdk.services import Targets
from kernel_foundry.text_file import read_text_file

_LISTED_CHARS = 120
_KINDS = [kind.value for kind in FindingKind]


@click.group()
def command() -> None:
    """List, search, add and copy lessons from earlier candidates.

    A lesson has a symptom, a move (what to do), and its measured effect on the candidates that it
    was shown for: their mean speed-up over their parents, how many were judged, and how many
    failed. Lessons are found by similarity and ranked by worth. Runs write new ones; some come with
    the package.
    """


command.add_command(add)
command.add_command(export_command)
command.add_command(import_command)
command.add_command(kernels)


@command.command("list")
@language_option("Only lessons for this language.")
@click.option(
    "--finding", type=click.Choice(_KINDS), metavar="KIND", help="Only lessons for this finding."
)
@json_option
@generator_option
def list_command(language: str | None, finding: str | None, as_json: bool, generator: str) -> int:
    """List all lessons, oldest first.

    \b
    kfoundry experience list --language sycl
    kfoundry experience list --finding bank_conflict --json
    """  # noqa: D301  a backspace keeps click from joining the lines
    with connect(Targets(generator=generator)) as foundry:
        lessons = [x for x in all_lessons(foundry) if _suits(x, language, finding)]
    if as_json:
        print_json([to_plain(lesson) for lesson in lessons])
        return 0
    table = Table("id", "for", "effect", "uses", "failed", "symptom and findings")
    for lesson in lessons:
        numbers = (_effect(lesson), str(lesson.use_count), str(lesson.failure_count))
        symptom = shorten(lesson.symptom, _LISTED_CHARS, placeholder="…")
        text = Text.assemble(printable(symptom), "\n", (", ".join(lesson.findings), "dim"))
        table.add_row(str(lesson.id), _language(lesson), *numbers, text)
    PrintableConsole().print(table if lessons else "no such lesson")
    return 0


@command.command()
@click.argument("text", default="")
@click.option(
    "--code",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Kernel to find lessons for: device code, or a candidate as Markdown.",
)
@click.option(
    "--finding",
    "findings",
    type=click.Choice(_KINDS),
    metavar="KIND",
    multiple=True,
    help="A finding of the kernel, such as memory_bound; repeatable.",
)
@language_option("Kernel language.  [default: search for each]")
@click.option("--expert", default="", help="Role of the lessons, such as memory.  [default: any]")
@click.option("--limit", type=click.IntRange(1, 100), default=5, show_default=True)
@json_option
@generator_option
def search(
    text: str,
    code: Path | None,
    findings: tuple[str, ...],
    language: str | None,
    expert: str,
    limit: int,
    as_json: bool,
    generator: str,
) -> int:
    """Find lessons as a prompt does: by text, a kernel's code, and its findings.

    `similarity` is the cosine between query and lesson, `score` ranks the hits: similarity, the
    match of findings and language, and what the lesson was worth.

    \b
    kfoundry experience search "softmax overflows to infinity"
    kfoundry experience search --code slow.cu --finding strided_access --language cuda
    """  # noqa: D301  a backspace keeps click from joining the lines
    if not (text or code or findings):
        raise click.UsageError("say what to search for: TEXT, --code or --finding")
    query = LessonQuery(
        language=Language(language or Language.SYCL),
        findings=tuple(FindingKind(kind) for kind in findings),
        text=text,
        code=read_text_file(code, LONGEST_CANDIDATE) if code else "",
        expert=expert,
    )
    queries = [query] if language else [replace(query, language=each) for each in Language]
    with connect(Targets(generator=generator)) as foundry:
        hits = _best(foundry, queries, limit)
    if as_json:
        print_json([to_plain(hit) for hit in hits])
        return 0
    console = PrintableConsole()
    for hit in hits:
        _show(console, hit)
    if not hits:
        console.print("no lesson fits")
    return 0


def _best(foundry: Foundry, queries: list[LessonQuery], limit: int) -> list[LessonHit]:
    by_lesson: dict[int, LessonHit] = {}
    for query in queries:
        for hit in foundry.ask_experience(partial(_hits, query=query, limit=limit)):
            known = by_lesson.get(hit.lesson.id)
            if known is None or known.score < hit.score:
                by_lesson[hit.lesson.id] = hit
    return sorted(by_lesson.values(), key=lambda hit: -hit.score)[:limit]


async def _hits(experience: Experience, query: LessonQuery, limit: int) -> tuple[LessonHit, ...]:
    return await experience.search(query, limit=limit)


def _suits(lesson: Lesson, language: str | None, finding: str | None) -> bool:
    speaks = language is None or lesson.language in (None, Language(language))
    return speaks and (finding is None or FindingKind(finding) in lesson.findings)


def _show(console: PrintableConsole, hit: LessonHit) -> None:
    lesson = hit.lesson
    console.print(
        f"{lesson.id}  score {hit.score:.2f}, similarity {hit.similarity:.2f}, "
        f"{_language(lesson)}, {', '.join(lesson.findings) or 'no finding'}, effect "
        f"{_effect(lesson)}, {counted(lesson.use_count, 'use')}, {lesson.failure_count} failed"
    )
    console.print(lesson.symptom, highlight=False)
    console.print(f"{lesson.move}\n", style="green", highlight=False)


def _language(lesson: Lesson) -> str:
    return lesson.language.value if lesson.language else "both"


def _effect(lesson: Lesson) -> str:
    """The mean speed-up of those that passed."""
    return f"{math.exp(lesson.effect):.2f}×" if lesson.use_count > lesson.failure_count else "-"
