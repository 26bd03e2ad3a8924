"""The console that commands print tables, colours and bars with."""

import sys
from collections.abc import Iterable
from typing import Any, Final

from rich.columns import Columns
from rich.console import Console, ConsoleOptions, RenderableType
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table
from rich.text import Text, TextType

from kernel_foundry.cli.output import exact_stream
from kernel_foundry.printable import printable

_WIDE: Final = 10_000
"""Columns of files and pipes: their lines are never folded."""

_PAGE: Final = 100
"""Columns of rules and bars, which fill the width, if there is no terminal."""


class PrintableConsole(Console):
    """A console whose texts are no markup, and printable whatever they are made of.

    Nothing in a table is shortened: what is wider than a terminal goes on in the next line of its
    cell, and where there is no terminal nothing is folded.

    Colours come from styles, never from words in brackets. Links are shown as text: a terminal
    would open them under any name.

    Args:
        stderr: Whether it prints on standard error.
        width: In characters.  [default: that of the terminal; without one as wide as needed]
    """

    def __init__(self, *, stderr: bool = False, width: int | None = None) -> None:
        stream = sys.stderr if stderr else sys.stdout
        self._is_page = width is None and not stream.isatty()
        if self._is_page:
            width = _WIDE
        # Below the printable stream, which would write out what rich itself moves cursors by.
        super().__init__(file=exact_stream(stream), width=width, markup=False, emoji=False)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print with layout."""
        for one in objects:
            if isinstance(one, Table):
                self._keep_whole(one)
        if self._is_page and any(isinstance(one, Columns) for one in objects):
            options.setdefault("width", _PAGE)
        super().print(*objects, **options)

    def rule(self, title: TextType = "", **options: Any) -> None:
        """Print a title in a line across the terminal; only the title if there is no terminal."""
        if self._is_page:
            self.print(title, highlight=False)
        else:
            super().rule(title, **options)

    def _keep_whole(self, table: Table) -> None:
        is_too_wide = Measurement.get(self, self.options, table).minimum >= self.width
        for column in table.columns:
            column.overflow = "fold"
            column.no_wrap = column.no_wrap and not is_too_wide

    def render_str(self, text: str, **options: Any) -> Text:
        """Return `text` as rich lays it out: printable before it is measured."""
        return super().render_str(printable(text), **{**options, "markup": False, "emoji": False})

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Return the segments of a renderable."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else _printable_segment(segment)

    def out(self, *objects: object, **options: Any) -> None:
        """Print without layout."""
        super().out(*(printable(str(one)) for one in objects), **options)


def _printable_segment(segment: Segment) -> Segment:
    text, style = printable(segment.text), segment.style
    if style is not None and style.link:
        style = style.update_link(None)
    if text == segment.text and style is segment.style:
        return segment
    return Segment(text, style)
