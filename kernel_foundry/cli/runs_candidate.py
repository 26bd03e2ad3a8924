"""`kfoundry runs candidate` and `kfoundry runs diff`: the text of any evaluated candidate."""

import difflib
import sys
from typing import Any

import click

from kernel_foundry.cli.options import json_option, open_foundry, target_options
from kernel_foundry.cli.output import print_exact, print_json, print_text
from kernel_foundry.domain.archive import ArchivedEvaluation
from kernel_foundry.plan.candidate_text import render
from kernel_foundry.sdk.find_candidate import find_candidate
from kernel_foundry.sdk.run_objects import archived_object

_run_option = click.option(
    "--run", default="", help="Whose evaluation a number is.  [default: the newest run]"
)


@click.command("candidate")
@click.argument("candidate")
@_run_option
@json_option
@target_options
def candidate_command(candidate: str, run: str, as_json: bool, **targets: Any) -> int:
    """Show the text of any evaluated CANDIDATE, even one that failed.

    CANDIDATE is the number of an evaluation, as `runs watch` shows it, or a digest or its beginning
    (four characters or more; eight if all are digits), in any run of the store.

    \b
    kfoundry runs candidate 7                        of the newest run
    kfoundry runs candidate 7 --run softmax-1
    kfoundry runs candidate a3d2b775 > my.md         the exact text, which `evaluate` reads
    """  # noqa: D301  a backspace keeps click from joining the lines
    with open_foundry(**targets) as foundry:
        is_number = len(candidate) < 8 and candidate.isdigit()
        if is_number and not run:
            run = foundry.ask_archive(lambda a: a.get_run("")).spec.name
            print_text(f"evaluation {candidate} of the newest run, {run}", err=True)
        found = foundry.ask_archive(lambda a: find_candidate(a, candidate, run))
    if as_json:
        print_json({**archived_object(found), "text": render(found.candidate.source)})
    else:
        _print(render(found.candidate.source))
    return 0


@click.command("diff")
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@_run_option
@target_options
def diff_command(before: str, after: str, run: str, **targets: Any) -> int:
    """Show how candidate B differs from candidate A, as a unified diff.

    A and B are given as for `runs candidate`; they may be of different runs.

    \b
    kfoundry runs diff 1 7
    kfoundry runs diff a3d2b775 90c1f2ee > change.diff
    """  # noqa: D301  a backspace keeps click from joining the lines
    with open_foundry(**targets) as foundry:
        old, new = (
            foundry.ask_archive(lambda a, n=named: find_candidate(a, n, run))  # type: ignore[misc]
            for named in (before, after)
        )
    lines = difflib.unified_diff(_lines(old), _lines(new), _name(old), _name(new))
    _print("".join(lines))
    return 0


def _lines(archived: ArchivedEvaluation) -> list[str]:
    # Not splitlines, which also breaks at characters that compilers do not break at.
    return [
        f"{line}\n" for line in render(archived.candidate.source).removesuffix("\n").split("\n")
    ]


def _name(archived: ArchivedEvaluation) -> str:
    return f"{archived.candidate.digest[:12]}.md"


def _print(text: str) -> None:
    if sys.stdout.isatty():
        print_text(text.removesuffix("\n"))
    else:
        print_exact(text)
