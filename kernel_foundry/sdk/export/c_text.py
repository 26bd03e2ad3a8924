"""Texts and numbers as C++ writes them."""

import math

from kernel_foundry.errors import InvalidArgumentError


def c_string(text: str) -> str:
    """Return a string literal."""
    plain = (c if 32 <= c < 127 and c not in b'\\"?' else None for c in text.encode())
    written = (chr(c) if c else f"\\{b:03o}" for c, b in zip(plain, text.encode(), strict=True))
    return f'"{"".join(written)}"'


def c_value(value: object) -> str:
    """Return a literal of the runtime's `Value`.

    Raises:
        InvalidArgumentError: it is a whole number of more than 64 bits.
    """
    match value:
        case None:
            return "Value()"
        case bool():
            return f"Value({str(value).lower()})"
        case int():
            if not -(2**63) < value < 2**63:
                raise InvalidArgumentError(f"{value} does not fit 64 bits", field="plan")
            return f"{value}_v" if value >= 0 else f"(-{-value}_v)"
        case float():
            return f"Value({c_real(value)})"
        case tuple():
            return f"tuple({{{', '.join(map(c_value, value))}}})"
        case _:
            return f"{c_string(str(value))}_v"


def c_real(value: float) -> str:
    """Return a literal of `double`."""
    if math.isnan(value):
        return "double(NAN)"
    if math.isinf(value):
        return f"double({'-' if value < 0 else ''}INFINITY)"
    return repr(float(value))


def c_comment(text: str) -> str:
    """Return a text that ends no comment."""
    # In this order: a backslash that becomes a slash may end one, or be written "??/".
    return text.replace("\\", "/").replace("??/", "? /").replace("*/", "* /")
