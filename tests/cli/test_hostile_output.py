"""No control sequence reaches a terminal, whichever field of whatever record holds it."""

import io
import json
import logging
import re
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.panel import Panel
from rich.progress import Progress, TextColumn
from rich.table import Table
from rich.text import Text

from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.cli.main import main
from kernel_foundry.cli.output import print_exact, print_json
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.printable import LineFormatter, PrintableStream, print_safely, printable
from tests.hostile_records import HOSTILE, fill
from tests.report_data import held_data

OURS = re.compile(r"\x1b\[(?:[0-9;]*m|\?25[lh]|[0-9]*[AK]|2K)|\r")
"""What rich sends to a terminal: colours, and the cursor of a bar."""
Command = Callable[..., tuple[str, str]]


def unshowable(text: str) -> set[str]:
    """Return what acts on a terminal or cannot be seen."""
    return {
        repr(c)
        for c in text
        if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c not in "\n\t"
    }


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


class Pipe(Terminal):
    def isatty(self) -> bool:
        return False


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of somebody whose models, devices and compilers are all hostile."""
    folder = tmp_path_factory.mktemp("hostile")
    fill(folder)
    return folder


@pytest.fixture
def command(data: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Return what runs a command as its entry point does and returns stdout and stderr."""
    monkeypatch.setenv("KERNEL_FOUNDRY_DATA_DIR", str(data))
    monkeypatch.setenv("KERNEL_FOUNDRY_DEVICE_KINDS", "null")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)

    def run(stream: type[Terminal], *words: str) -> tuple[str, str]:
        out, err = stream(), stream()
        with monkeypatch.context() as patched:
            patched.setattr(sys, "argv", ["kfoundry", *words])
            patched.setattr(sys, "stdout", out)
            patched.setattr(sys, "stderr", err)
            with pytest.raises(SystemExit) as ended:
                main()
        assert ended.value.code in (0, 1, 2), err.getvalue()
        return out.getvalue(), err.getvalue()

    return run


COMMANDS = [
    ("runs", "list"),
    ("runs", "show", "first"),
    ("runs", "best", "first"),
    ("runs", "watch", "first"),
    ("runs", "exchanges", "first"),
    ("runs", "exchanges", "first", "--selection", "1"),
    ("runs", "record", "first"),
    ("experience", "search", HOSTILE.replace("\x00", "")),
    ("runs", "show", "--", HOSTILE.replace("\x00", "")),
    ("runs", HOSTILE.replace("\x00", "")),
    ("evaluate", HOSTILE.replace("\x00", ""), "none.md"),
]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words)[:20])
@pytest.mark.parametrize("stream", [Terminal, Pipe])
def test_every_command_prints_text_alone(
    command: Command, stream: type[Terminal], words: tuple[str, ...]
) -> None:
    out, err = command(stream, *words)
    # Into a pipe goes the winner's exact text: a test of its own looks at that.
    told = err if words[:2] == ("runs", "best") and stream is Pipe else out + err
    assert told
    assert "\x1b[9;53m" not in told
    assert "\x1b]" not in told
    assert unshowable(OURS.sub("", told) if stream is Terminal else told) == set()


def test_hostile_words_are_shown_and_not_obeyed(command: Command) -> None:
    """What is written out says what was there; brackets are no markup, and lines are whole."""
    told, _ = command(Pipe, "runs", "exchanges", "first", "--selection", "1")
    assert printable(HOSTILE) in told
    assert r"a\x1b]0;owned\x07" in told
    assert r"\u202egpj." in told
    watched = command(Pipe, "runs", "watch", "first")[0].splitlines()
    assert [line.partition("]")[0] for line in watched] == ["[1", "[2", "[2"]


@pytest.mark.parametrize(
    "words",
    [
        ("runs", "list"),
        ("runs", "show", "first"),
        ("runs", "best", "first"),
        ("runs", "exchanges", "first", "--selection", "1"),
        ("experience", "list"),
    ],
    ids=" ".join,
)
def test_json_stays_json_and_exact(command: Command, words: tuple[str, ...]) -> None:
    told, _ = command(Terminal, *words, "--json")
    assert unshowable(told) == set()
    assert json.loads(told)
    if "exchanges" in words:
        assert json.loads(told)[0]["reply"] == HOSTILE


def test_best_into_a_pipe_is_the_candidate_to_the_character(
    command: Command,
) -> None:
    out, err = command(Pipe, "runs", "best", "first")
    winner = json.loads(command(Pipe, "runs", "best", "first", "--json")[0])
    assert out == winner["candidate"]
    assert HOSTILE in out
    assert "PASSED" in err


def test_report_shows_what_a_browser_would_hide(command: Command, data: Path) -> None:
    command(Pipe, "runs", "report", "first", "--out", str(data / "r.html"))
    html = (data / "r.html").read_text()
    assert unshowable(html) == set()
    assert "<script>alert" not in html
    held = json.dumps(held_data(data / "r.html"), ensure_ascii=False)
    assert unshowable(held) == set()
    assert r"\u202egpj." in held


TEXTS = st.text(
    st.one_of(st.characters(), st.sampled_from("\x1b[]\x07\x9b\x7f\u202e\u200b\r\n\\;m/")),
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(texts=st.lists(TEXTS, min_size=5, max_size=5))
def test_nothing_unshowable_passes_the_sink(texts: list[str]) -> None:
    """Whichever way a text is printed by; rich's own colours are off in a pipe."""
    stream = Pipe()
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = stream, stream
    try:
        print_safely()
        console = PrintableConsole()
        with Progress(TextColumn("{task.description}", markup=False), console=console) as bar:
            for text in texts:
                bar.add_task(text)
        for text in texts:
            _print_in_every_way(text, console, stream)
    finally:
        sys.stdout, sys.stderr = before
    assert unshowable(stream.getvalue()) == set()


def _print_in_every_way(text: str, console: PrintableConsole, stream: Pipe) -> None:
    print(text)
    click.echo(text)
    click.echo(text, err=True)
    sys.stderr.write(text)
    table = Table(text, title=text, caption=text)
    table.add_row(text)
    table.add_row(Text(text))
    for shown in (text, Text(text), Panel(text, title=text), table):
        console.print(shown)
    console.rule(text)
    console.out(text)
    print_json({text: [text]})
    error = InvalidArgumentError(text)
    record = logging.LogRecord("n", logging.ERROR, "", 0, "%s", (text,), None)
    stream.write(LineFormatter("%(message)s").format(record) + str(error))


@given(text=TEXTS)
def test_json_and_exact_text_lose_nothing(text: str) -> None:
    stream = Pipe()
    before = sys.stdout
    sys.stdout = PrintableStream(stream)
    try:
        print_json(text)
        assert json.loads(stream.getvalue()) == text
        print_exact(text)
    finally:
        sys.stdout = before
    assert stream.getvalue().endswith(text)


@given(text=TEXTS)
def test_log_line_cannot_be_forged(text: str) -> None:
    record = logging.LogRecord("n", logging.ERROR, "", 0, "%s", (text,), None)
    lines = LineFormatter("ERROR %(message)s").format(record).split("\n")
    assert [line[:4] for line in lines[1:]] == ["    "] * (len(lines) - 1)


def test_markup_comes_from_styles_alone() -> None:
    stream = Pipe()
    before = sys.stdout
    sys.stdout = stream
    try:
        PrintableConsole().print("[bold]x[/] [link=http://evil]y[/link] :smile:")
    finally:
        sys.stdout = before
    assert stream.getvalue() == "[bold]x[/] [link=http://evil]y[/link] :smile:\n"
