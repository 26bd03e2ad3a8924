"""YAML of plain values, read within limits: no aliases, no depth, no text that takes minutes.

Aliases make a value of gigabytes out of a few lines, and readers of nested values recurse.
"""

from typing import Any, Final

import yaml

_LONGEST: Final = 1 << 17
"""Characters; reading takes some ten microseconds for each."""
_DEEPEST: Final = 16


class PlainYamlError(ValueError):
    """The text is no YAML, or beyond the limits; the message is cut short."""


def read_yaml(text: str) -> Any:
    """Return the value that `text` describes, with dates as dates; None for an empty text.

    Raises:
        PlainYamlError: see there.
    """
    if len(text) > _LONGEST:
        raise PlainYamlError(f"{len(text)} characters, expected at most {_LONGEST}")
    try:
        return yaml.load(text, _PlainLoader)
    # A date of no calendar, an integer of thousands of digits, a float out of range.
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        raise PlainYamlError(str(error)[:500]) from error


def write_yaml(value: Any) -> str:
    """Return a text that `read_yaml` reads as `value`, its keys in their order."""
    return yaml.dump(value, Dumper=_PlainDumper, sort_keys=False, width=100)


class _PlainDumper(yaml.SafeDumper):
    """Writes a value out wherever it stands."""

    def ignore_aliases(self, data: Any) -> bool:
        """Return that there are none."""
        return True


class _PlainLoader(yaml.SafeLoader):
    """Refuses aliases and depth where they stand."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Return the next node, with what is in it."""
        if self.check_event(yaml.AliasEvent):
            self._refuse("an alias (*name); write the value out")
        self._depth += 1
        if self._depth > _DEEPEST:
            self._refuse(f"values within values, more than {_DEEPEST} deep")
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def _refuse(self, what: str) -> None:
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
        raise PlainYamlError(f"line {mark.line + 1}: {what}")
