"""YAML of plain values, read within limits: no aliases, no depth, no text that takes minutes.

Aliases make a value of gigabytes out of a few lines, and readers of nested values recurse. What
YAML 1.1 takes for another value than its reader sees is refused, and so is a repeated key.
"""

import re
from collections.abc import Hashable
from typing import Any, Final, NoReturn

import yaml

_LONGEST: Final = 1 << 17
"""Characters; reading takes some ten microseconds for each."""
_DEEPEST: Final = 16
_INTEGER: Final = re.compile(r"[-+]?(?:0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)")
"""Integers that everybody reads alike; YAML 1.1 also has 010, which is 8, and 1:30, which is 90."""
_TEXT: Final = "tag:yaml.org,2002:str"


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
    """Refuses aliases, depth, repeated keys and ambiguous values where they stand."""

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

    def construct_yaml_int(self, node: Any) -> int:
        """Return an integer that is written as one."""
        if node.style is None and not _INTEGER.fullmatch(node.value):
            _refuse_at(node, f"{node.value[:40]}: write a decimal number, or quote a text")
        return super().construct_yaml_int(node)

    def construct_yaml_float(self, node: Any) -> float:
        """Return a float that is written as one."""
        if ":" in node.value:
            _refuse_at(node, f"{node.value[:40]}: write a decimal number, or quote a text")
        return super().construct_yaml_float(node)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        """Return a mapping, each of whose keys is a text of its own."""
        seen: set[str] = set()
        for key, _ in node.value:
            if key.tag != _TEXT:
                _refuse_at(key, f"{_shown_key(key)} is not a plain key; quote a text")
            if key.value in seen:
                _refuse_at(key, f"{_shown_key(key)} comes twice")
            seen.add(key.value)
        return super().construct_mapping(node, deep)

    def _refuse(self, what: str) -> None:
        _refuse_at(self.peek_event(), what)  # type: ignore[no-untyped-call]


_PlainLoader.add_constructor("tag:yaml.org,2002:int", _PlainLoader.construct_yaml_int)
_PlainLoader.add_constructor("tag:yaml.org,2002:float", _PlainLoader.construct_yaml_float)


def _shown_key(key: Any) -> str:
    return f"the key {key.value[:40]}" if isinstance(key.value, str) else "a key of several values"


def _refuse_at(place: Any, what: str) -> NoReturn:
    raise PlainYamlError(f"line {place.start_mark.line + 1}: {what}")
