"""Canonical JSON: one text for one value, so that a digest of it means something.

Source: RFC 8785 (JSON Canonicalization Scheme).
"""

import json
import math
from typing import Any, Final

LARGEST_INTEGER: Final = 2**53
"""Beyond it a JSON number is not the same in every language."""


class NotCanonicalError(ValueError):
    """Data that has no canonical form: a huge integer, half a character, a number that is none."""


def canonical_json(data: Any) -> bytes:
    """Return the canonical form of plain `data` (dicts, lists, strings, numbers, None).

    Raises:
        NotCanonicalError: there is none.
    """
    parts: list[str] = []
    _write(data, parts)
    try:
        return "".join(parts).encode()
    except UnicodeEncodeError as error:
        raise NotCanonicalError(f"text that is not Unicode: {error}") from error


def number_text(value: float) -> str:
    """Return a finite number as ECMAScript writes it: the shortest digits that give it back."""
    digits, _, exponent = repr(float(value)).partition("e")
    if not exponent:
        whole, _, fraction = digits.partition(".")
        if fraction != "0":
            return digits
        return "0" if whole == "-0" else whole
    power = int(exponent)
    if -6 <= power < 21:
        return _without_exponent(digits, power)
    return f"{digits}e{'+' if power > 0 else ''}{power}"


def _without_exponent(digits: str, power: int) -> str:
    """Return `digits` (one before the point) times ten to `power`, written out."""
    sign, digits = ("-", digits[1:]) if digits.startswith("-") else ("", digits)
    whole, _, fraction = digits.partition(".")
    figures = whole + fraction
    if power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{figures}"
    return sign + figures.ljust(power + 1, "0")


def _write(data: Any, parts: list[str]) -> None:
    if isinstance(data, dict):
        _write_object(data, parts)
    elif isinstance(data, list | tuple):
        for index, item in enumerate(data):
            parts.append("," if index else "[")
            _write(item, parts)
        parts.append("]" if data else "[]")
    else:
        parts.append(_scalar(data))


def _write_object(data: dict[str, Any], parts: list[str]) -> None:
    # By UTF-16 code units, as the RFC has it: above the basic plane that is not Unicode's order.
    keys = sorted(data, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
    for index, key in enumerate(keys):
        parts.append(f"{',' if index else '{'}{_string(key)}:")
        _write(data[key], parts)
    parts.append("}" if data else "{}")


def _scalar(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, int):
        if abs(value) > LARGEST_INTEGER:
            raise NotCanonicalError(f"{value} is beyond the integers that JSON keeps")
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return number_text(value)
    raise NotCanonicalError(f"{value!r} is nothing that JSON has")


def _string(text: str) -> str:
    # The short escapes, \u00xx for other control characters, everything else as it is: the RFC's.
    return json.dumps(text, ensure_ascii=False)
