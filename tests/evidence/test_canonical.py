"""Canonical JSON is RFC 8785's: numbers, strings and the order of members."""

import json
import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_foundry.evidence.canonical import NotCanonicalError, canonical_json, number_text

# IEEE 754 bits and what ECMAScript writes.
# Source: RFC 8785, appendix B.
RFC_NUMBERS = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}


@pytest.mark.parametrize(("bits", "text"), RFC_NUMBERS.items())
def test_numbers_are_written_as_the_rfc_has_them(bits: str, text: str) -> None:
    (value,) = struct.unpack(">d", bytes.fromhex(bits))
    assert number_text(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_written_number_is_the_number(value: float) -> None:
    """It is read back as the same number, and written again as the same text."""
    text = number_text(value)
    assert float(text) == value
    assert number_text(float(text)) == text


def test_text_and_order_are_the_rfcs() -> None:
    """Its own example: short escapes, other characters as they are, names by UTF-16 units."""
    text = '€$\x0f\nA\'B"\\\\"/'
    assert canonical_json(text).decode() == '"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"'
    names = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\x80", "\xf6"]
    ordered = ["\r", "1", "\x80", "\xf6", "\u20ac", "\U0001f600", "\ufb33"]
    assert list(json.loads(canonical_json(dict.fromkeys(names, 1)))) == ordered


def test_nothing_stands_between_the_parts() -> None:
    data = {"b": [1, 2.0, -0.5], "a": {}, "c": [], "d": [None, True, False]}
    assert canonical_json(data) == b'{"a":{},"b":[1,2,-0.5],"c":[],"d":[null,true,false]}'


@pytest.mark.parametrize("data", [2**53 + 1, math.nan, math.inf, "\ud800", {1, 2}])
def test_what_json_does_not_keep_is_refused(data: object) -> None:
    with pytest.raises(NotCanonicalError):
        canonical_json([data])
