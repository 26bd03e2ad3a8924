"""Pieces of HTML for a cell of a notebook: every text in them is escaped and printable."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from kernel_foundry.printable import printable

_CELL: Final = 'style="text-align:left;vertical-align:top"'


def shown(value: str) -> str:
    """Return a text of anyone as HTML that shows it and does nothing."""
    return escape(printable(value))


def paragraph(value: str) -> str:
    """Return a paragraph of one text."""
    return f"<p>{shown(value)}</p>"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of texts."""
    head = "".join(f'<th scope="col" {_CELL}>{shown(column)}</th>' for column in columns)
    body = "".join(
        "<tr>" + "".join(f"<td {_CELL}>{shown(value)}</td>" for value in row) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def folded(summary: str, code: str) -> str:
    """Return source text that opens on a click."""
    return (
        f"<details><summary>{shown(summary)}</summary>"
        f'<pre style="white-space:pre;overflow:auto;max-height:40em">{shown(code)}</pre></details>'
    )
