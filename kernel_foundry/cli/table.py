"""Tables of commands: no lines between cells. The console never truncates a cell."""

from typing import Any

from rich.box import SIMPLE
from rich.table import Column, Table


def plain_table(*columns: Column | str, **options: Any) -> Table:
    """Return a table; options are those of rich."""
    return Table(*columns, box=SIMPLE, pad_edge=False, **options)


def numbers(*headings: str) -> list[Column]:
    """Return right-aligned columns for numbers."""
    return [Column(heading, justify="right") for heading in headings]


def whole(heading: str) -> Column:
    """Return a column whose texts are not folded if the terminal is wide enough."""
    return Column(heading, no_wrap=True)
