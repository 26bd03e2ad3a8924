"""The texts of TUNE and CONST in a launch plan."""

from collections.abc import Mapping, Sequence


def default_first(default: int, values: Sequence[int]) -> list[int]:
    """Return the values of a TUNE parameter with its default in front."""
    return [default, *(v for v in values if v != default)]


def dictionary(values: Mapping[str, object]) -> str:
    """Return a plan's dictionary, one entry a line when they do not fit one."""
    entries = [f'"{name}": {_text(value)}' for name, value in values.items()]
    line = "{" + ", ".join(entries) + "}"
    if len(line) <= 88:
        return line
    return "{\n" + "".join(f"    {entry},\n" for entry in entries) + "}"


def _text(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)
