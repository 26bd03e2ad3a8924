"""The console that commands print tables, colours and bars with."""

import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from kernel_foundry.cli.output import exact_stream
from kernel_foundry.printable import printable


class PrintableConsole(Console):
    """A console whose texts are no markup, and printable whatever they are made of.

    Colours come from styles, never from words in brackets. Links are shown as text: a terminal
    would open them under any name.

    Args:
        stderr: Whether it prints on standard error.
        width: In characters.  [default: that of the terminal]
    """

    def __init__(self, *, stderr: bool = False, width: int | None = None) -> None:
        stream = sys.stderr if stderr else sys.stdout
        # Below the printable stream, which would write out what rich itself moves cursors by.
        super().__init__(file=exact_stream(stream), width=width, markup=False, emoji=False)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return `text` as rich lays it out: printable before it is measured."""
        return super().render_str(printable(text), **{**options, "markup": False, "emoji": False})

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Return the pieces of what is printed."""
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
