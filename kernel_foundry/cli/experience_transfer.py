"""`kfoundry experience add`, `export` and `import`: lessons of users, and copies in files."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from kernel_foundry.cli.options import generator_option, json_option, language_option
from kernel_foundry.cli.output import print_json, print_text
from kernel_foundry.domain.candidate import LONGEST_CANDIDATE
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.lesson import AddedLesson, Lesson, LessonOrigin
from kernel_foundry.lesson_file import lesson_from_fields, read_lines, read_yaml, write_lines
from kernel_foundry.quantity_text import counted
from kernel_foundry.sdk.client import Foundry, connect
from kernel_foundry.sdk.services import Targets
from kernel_foundry.text_file import read_text_file

_PAGE = 500


@click.command()
@click.option(
    "--file",
    "path",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="YAML file with one lesson or a list of lessons; replaces the options below.",
)
@click.option("--symptom", help="What can be observed, in one or two sentences.")
@click.option("--move", help="What to do and why it helps.")
@language_option("Language that the lesson is for.  [default: both]")
@click.option(
    "--finding",
    "findings",
    type=click.Choice([kind.value for kind in FindingKind]),
    metavar="KIND",
    multiple=True,
    help="Finding that the lesson helps with, such as bank_conflict; repeatable.",
)
@click.option(
    "--expert",
    "experts",
    multiple=True,
    help="Role that the lesson is for; repeatable.  [default: all]",
)
@click.option("--source", help="Source of the lesson: a URL, a document, a name.")
@click.option(
    "--excerpt",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="File with a few lines of code as an example.",
)
@json_option
@generator_option
def add(
    path: Path | None,
    symptom: str | None,
    move: str | None,
    language: str | None,
    findings: tuple[str, ...],
    experts: tuple[str, ...],
    source: str | None,
    excerpt: Path | None,
    as_json: bool,
    generator: str,
) -> int:
    """Add a lesson of your own; if one already says the same, the two are merged.

    In a YAML file a lesson has the same fields; `before` and `after` are the levels of memory,
    algorithm and synchronization, such as [0, 1, 0].

    \b
    kfoundry experience add --symptom "Half of the lanes idle on rows of 16 elements." \\
        --move "Let a sub-group take two rows." --language sycl --finding occupancy \\
        --source "our profiler"
    kfoundry experience add --file lessons.yaml
    """  # noqa: D301  a backspace keeps click from joining the lines
    if path is not None:
        lessons = read_yaml(path)
    else:
        code = read_text_file(excerpt, LONGEST_CANDIDATE) if excerpt else ""
        fields = {"symptom": symptom, "move": move, "source": source, "language": language}
        lists = {"findings": list(findings), "experts": list(experts)}
        lessons = (_from_options({**fields, **lists, "excerpt": code}),)
    with connect(Targets(generator=generator)) as foundry:
        added = [_add(foundry, lesson) for lesson in lessons]
    if as_json:
        print_json([{"id": one.lesson.id, "new": one.is_new} for one in added])
    else:
        for one in added:
            print_text(f"lesson {one.lesson.id} {'added' if one.is_new else 'already existed'}")
    return 0


def _from_options(fields: dict[str, Any]) -> Lesson:
    missing = [f"--{name}" for name in ("symptom", "move", "source") if not fields[name]]
    if missing:
        raise click.UsageError(f"{', '.join(missing)} or --file is needed")
    return lesson_from_fields(fields, origin=LessonOrigin.USER, where="the lesson")


@click.command("export")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@json_option
@generator_option
def export_command(file: Path, as_json: bool, generator: str) -> int:
    """Write all lessons with their statistics to FILE, as JSON Lines.

    \b
    kfoundry experience export lessons.jsonl
    kfoundry experience export --generator gpuhost:50053 theirs.jsonl
    """  # noqa: D301  a backspace keeps click from joining the lines
    with connect(Targets(generator=generator)) as foundry:
        count = write_lines(file, all_lessons(foundry))
    message = {"lessons": count, "file": str(file)}
    print_text(json.dumps(message) if as_json else f"{counted(count, 'lesson')} in {file}")
    return 0


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@json_option
@generator_option
def import_command(file: Path, as_json: bool, generator: str) -> int:
    """Add the lessons of FILE, written by `experience export`, to the library.

    A lesson that repeats an existing one is merged into it: statistics are pooled, the better
    wording stays. Importing the same line of the same file again has no effect. A file with a
    damaged line is refused as a whole.

    \b
    kfoundry experience import theirs.jsonl
    """  # noqa: D301  a backspace keeps click from joining the lines
    lessons = tuple(read_lines(file))
    with connect(Targets(generator=generator)) as foundry:
        added = [_add(foundry, lesson) for lesson in lessons]
    new = sum(one.is_new for one in added)
    if as_json:
        print_json({"new": new, "merged": len(added) - new, "file": str(file)})
    else:
        print_text(f"{counted(new, 'new lesson')}, {len(added) - new} merged into others")
    return 0


def all_lessons(foundry: Foundry) -> Iterator[Lesson]:
    """Yield every lesson, by id."""
    after = 0
    while page := _page(foundry, after):
        yield from page
        after = page[-1].id


def _page(foundry: Foundry, after: int) -> tuple[Lesson, ...]:
    return foundry.ask_experience(lambda e: e.lessons(after=after, limit=_PAGE))


def _add(foundry: Foundry, lesson: Lesson) -> AddedLesson:
    return foundry.ask_experience(lambda experience: experience.add(lesson))
