"""Pieces of HTML for a cell of a notebook: every text in them is escaped and printable."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from kernel_foundry.printable import printable

_CELL: Final = 'style="text-align:left;vertical-align:top"'


def escaped(value: str) -> str:
    """Return an untrusted text as HTML, escaped and printable."""
    return escape(printable(value))


def paragraph(value: str) -> str:
    """Return a paragraph of one text."""
    return f"<p>{escaped(value)}</p>"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of texts."""
    head = "".join(f'<th scope="col" {_CELL}>{escaped(column)}</th>' for column in columns)
    body = "".join(
        "<tr>" + "".join(f"<td {_CELL}>{escaped(value)}</td>" for value in row) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def collapsible(summary: str, code: str) -> str:
    """Return source code in an element that opens on a click."""
    return (
        f"<details><summary>{escaped(summary)}</summary>"
        '<pre style="white-space:pre;overflow:auto;max-height:40em">'
        f"{escaped(code)}</pre></details>"
    )
