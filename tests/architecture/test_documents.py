"""What the documents name is there: files, headings, commands and their options."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from kernel_foundry.cli.main import cli

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("*/DESIGN.md")])

PASSES_ON = {"capture", "serve", "submit"}
"""Commands that take the options of another program."""


def _commands(command: click.Command, words: tuple[str, ...]) -> Iterator[tuple[str, set[str]]]:
    """Each command with its options."""
    yield " ".join(words), {o for p in command.params for o in (*p.opts, *p.secondary_opts)}
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from _commands(found, (*words, name))


COMMANDS = dict(_commands(cli, ()))


def _prose(document: Path) -> str:
    return re.sub(r"^(`{3,}).*?^\1$", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)


def _anchors(document: Path) -> set[str]:
    heads = re.findall(r"^#+ (.*)$", _prose(document), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: d.name)
def test_every_link_leads_to_a_file_and_a_heading(document: Path) -> None:
    text = re.sub(r"(`+).*?\1", "", _prose(document))
    for name, anchor in re.findall(r"\]\(([\w./-]*\w/?)?(?:#([\w-]+))?\)", text):
        if "." in name or anchor:  # others are words of code in a table
            target = document.parent / name if name else document
            assert target.exists(), name
            assert not anchor or anchor in _anchors(target), anchor


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: d.name)
def test_every_option_is_one_of_its_command(document: Path) -> None:
    if document.name == "CHANGELOG.md":  # older versions had other options
        return
    text = document.read_text().replace("\\\n", " ")
    for line in re.findall(r"kfoundry ([^`\n]*)", text):
        words = line.split("#")[0].split()
        command = next(
            name
            for count in (2, 1, 0)
            if (name := " ".join(words[:count])) in COMMANDS and len(words) >= count
        )
        if command.partition(" ")[0] in PASSES_ON or not command:
            continue
        quoted = re.sub(r"\".*?\"", "", line.split("#")[0])
        for option in re.findall(r"(?<!\S)(--[a-z][\w-]*)", quoted):
            assert option in COMMANDS[command] | {"--help"}, f"{command} {option}"


def test_the_page_of_the_command_line_has_every_command() -> None:
    """`runs list|show` stands for two."""
    text = (ROOT / "docs/cli.md").read_text()
    named = {
        name
        for first, names in re.findall(r"`([a-z]+ )?([a-z]+(?:\|[a-z]+)*)(?=[` ])", text)
        for last in names.split("|")
        for name in (first.strip(), f"{first}{last}")
    }
    groups = {name.rpartition(" ")[0] for name in COMMANDS}
    assert set(COMMANDS) - groups - named == set()


def test_some_page_has_every_option() -> None:
    text = "".join(document.read_text() for document in DOCUMENTS)
    options = {option for found in COMMANDS.values() for option in found if option[:2] == "--"}
    assert {option for option in options if option not in text} == {"--version", "--tools"}
