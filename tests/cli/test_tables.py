"""Tables keep whatever they have: folded in a narrow terminal, on one line where there is none."""

import io

import pytest
from rich.columns import Columns
from rich.table import Column, Table

from kernel_foundry.cli.console import PrintableConsole

_ID = "20261128-095012-1f0c9a7e"
_CLASS = "cuda:nvidia-h200-141gb-hbm3e-1f0c9a7e"


def _printed(patch: pytest.MonkeyPatch, width: int | None) -> str:
    stream = io.StringIO()  # no terminal
    patch.setattr("sys.stdout", stream)
    table = Table(Column("job", no_wrap=True), "class", "submitted")
    table.add_row(_ID, _CLASS, "2026-11-28 09:50")
    PrintableConsole(width=width).print(table)
    return stream.getvalue()


def test_without_a_terminal_a_row_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    lines = _printed(monkeypatch, None).splitlines()
    (row,) = [line for line in lines if _ID in line]
    assert _CLASS in row
    assert "2026-11-28 09:50" in row


def test_without_a_terminal_nothing_fills_a_width(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stdout", stream)
    console = PrintableConsole()
    console.rule("run-1: ended")
    console.print(Columns(["a" * 30] * 9))
    title, *blocks = stream.getvalue().splitlines()
    assert title == "run-1: ended"
    assert len(blocks) == 3
    assert max(map(len, blocks)) <= 100


def test_a_narrow_terminal_shows_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = _printed(monkeypatch, 40)
    assert "…" not in printed
    assert max(map(len, printed.splitlines())) <= 40
    rows = [line.strip("│").split("│") for line in printed.splitlines() if line.startswith("│")]
    cells = ["".join(part.strip() for part in column) for column in zip(*rows, strict=True)]
    assert cells == [_ID, _CLASS, "2026-11-2809:50"]
