"""Operators and functions on numbers and tuples, with bounds on every result.

A plan is hostile until shown otherwise: no operation here can take long or hold much memory. Errors
carry no line; the interpreter adds it.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from kernel_foundry.plan.errors import bind_error, limit_error
from kernel_foundry.plan.limits import INT_MAX, INT_MIN, MAX_TUPLE_WEIGHT
from kernel_foundry.plan.values import PlanTensor, Value, describe
from kernel_foundry.plan.vocabulary import NO_TENSOR_ARITHMETIC

Number: TypeAlias = int | float

_SYMBOLS: Final[dict[type[ast.operator], str]] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
}
_BINARY: Final[dict[str, Callable[[Number, Number], Number]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
}
_ORDER: Final[dict[type[ast.cmpop], Callable[[Number, Number], bool]]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def binary(operation: ast.operator, left: Value, right: Value) -> Value:
    """Return `left operation right`.

    Raises:
        PlanError: `bind` for operands that it does not take, `limit` for a result too large.
    """
    symbol = _SYMBOLS[type(operation)]
    if isinstance(left, tuple) and isinstance(right, tuple) and symbol == "+":
        return make_tuple((*left, *right))
    first, second = number(left, symbol), number(right, symbol)
    if symbol == "**":
        _check_power(first, second)
    try:
        result = _BINARY[symbol](first, second)
    except ZeroDivisionError:
        raise bind_error(f"division by zero: {first!r} {symbol} {second!r}") from None
    except OverflowError:
        raise limit_error(f"{first!r} {symbol} {second!r} is too large") from None
    return bounded(result)


def unary(operation: ast.unaryop, operand: Value) -> Value:
    """Return `-operand`, `+operand` or `not operand`.

    Raises:
        PlanError: `bind` for an operand that it does not take.
    """
    if isinstance(operation, ast.Not):
        return not truth(operand)
    value = number(operand, "-")
    return bounded(-value) if isinstance(operation, ast.USub) else value


def compare(operation: ast.cmpop, left: Value, right: Value) -> bool:
    """Return whether `left operation right` holds.

    Raises:
        PlanError: `bind` for operands that it does not take.
    """
    if isinstance(operation, ast.Eq | ast.NotEq):
        return _equal(left, right) == isinstance(operation, ast.Eq)
    if isinstance(operation, ast.In | ast.NotIn):
        if not isinstance(right, tuple):
            raise bind_error(f"in needs a tuple on the right, not {describe(right)}")
        found = any(_equal(left, item) for item in right)
        return found == isinstance(operation, ast.In)
    return _ORDER[type(operation)](number(left, "comparison"), number(right, "comparison"))


def truth(value: Value) -> bool:
    """Return whether a condition holds.

    Raises:
        PlanError: `bind`, for a value that is neither true nor false.
    """
    if isinstance(value, bool | int | float | str | tuple):
        return bool(value)
    raise bind_error(f"{describe(value)} is neither true nor false")


def number(value: Value, operation: str) -> Number:
    """Return `value` if it is a number.

    Raises:
        PlanError: `bind`, naming what the operation takes.
    """
    if isinstance(value, int | float):
        return value
    if isinstance(value, PlanTensor):
        raise bind_error(NO_TENSOR_ARITHMETIC)
    raise bind_error(f"{operation} takes numbers, not {describe(value)}")


def whole(value: Value, what: str) -> int:
    """Return `value` if it is a whole number.

    Raises:
        PlanError: `bind`, naming `what` needs it.
    """
    if isinstance(value, int):
        return int(value)
    hint = ": use // or cdiv instead of /" if isinstance(value, float) else ""
    raise bind_error(f"{what} must be a whole number, not {describe(value)}{hint}")


def bounded(value: object) -> Number:
    """Return a number result that a plan may hold.

    Raises:
        PlanError: `limit` beyond 64 bits, `bind` for a complex number.
    """
    if isinstance(value, int):
        if not INT_MIN <= value <= INT_MAX:
            raise limit_error("a whole number must fit 64 bits")
        return value
    if isinstance(value, float):
        return value
    raise bind_error("the result is not a real number")


def make_tuple(items: tuple[Value, ...]) -> tuple[Value, ...]:
    """Return `items` if a plan may hold so much.

    Raises:
        PlanError: `limit`, when the tuple with all that is nested in it is too large.
    """
    if sum(map(_weight, items)) > MAX_TUPLE_WEIGHT:
        raise limit_error(f"a tuple holds at most {MAX_TUPLE_WEIGHT} items")
    return items


def _weight(value: Value) -> int:
    # Every tuple that exists has passed make_tuple, so this walk is short.
    return 1 + sum(map(_weight, value)) if isinstance(value, tuple) else 1


def _equal(left: Value, right: Value) -> bool:
    for value in (left, right):
        if not isinstance(value, bool | int | float | str | tuple):
            raise bind_error(f"{describe(value)} cannot be compared: compare .shape or .dtype")
    return left == right


def _check_power(base: Number, exponent: Number) -> None:
    """Refuse a power before Python computes it: 9**9**9 would never end."""
    if isinstance(base, int) and isinstance(exponent, int) and abs(base) > 1 and exponent > 64:
        raise limit_error(f"{base} ** {exponent} is too large: whole numbers must fit 64 bits")


def _cdiv(numerator: Value, denominator: Value) -> Value:
    divisor = whole(denominator, "cdiv's divisor")
    if divisor == 0:
        raise bind_error("division by zero: cdiv(n, 0)")
    return bounded(-(-whole(numerator, "cdiv's dividend") // divisor))


def _extreme(choose: Callable[..., Number], name: str, values: tuple[Value, ...]) -> Value:
    if len(values) == 1 and isinstance(values[0], tuple):
        values = values[0]
    if not values:
        raise bind_error(f"{name} needs at least one number")
    return choose(number(value, name) for value in values)


def _min(*values: Value) -> Value:
    return _extreme(min, "min", values)


def _max(*values: Value) -> Value:
    return _extreme(max, "max", values)


def _abs(value: Value) -> Value:
    return bounded(abs(number(value, "abs")))


def _int(value: Value) -> Value:
    return bounded(int(number(value, "int")))


def _len(value: Value) -> Value:
    if isinstance(value, tuple | str):
        return len(value)
    raise bind_error(f"len takes a tuple, not {describe(value)}; a tensor has .shape and .numel()")


def _next_pow2(value: Value) -> Value:
    size = whole(value, "next_pow2's argument")
    return bounded(1 << max(size - 1, 0).bit_length())


def _sqrt(value: Value) -> Value:
    return math.sqrt(number(value, "sqrt"))


def _exp(value: Value) -> Value:
    return math.exp(number(value, "exp"))


def _log2(value: Value) -> Value:
    return math.log2(number(value, "log2"))


_FUNCTIONS: Final[Mapping[str, tuple[Callable[..., Value], int | None]]] = {
    "cdiv": (_cdiv, 2),
    "min": (_min, None),
    "max": (_max, None),
    "abs": (_abs, 1),
    "int": (_int, 1),
    "len": (_len, 1),
    "next_pow2": (_next_pow2, 1),
    "sqrt": (_sqrt, 1),
    "exp": (_exp, 1),
    "log2": (_log2, 1),
}


def call(name: str, arguments: tuple[Value, ...]) -> Value:
    """Return the result of a built-in arithmetic function.

    Raises:
        PlanError: `bind` for wrong arguments, `limit` for a result too large.
    """
    function, count = _FUNCTIONS[name]
    if count is not None and len(arguments) != count:
        raise bind_error(f"{name} takes {count} argument(s), not {len(arguments)}")
    try:
        return function(*arguments)
    except OverflowError:
        raise limit_error(f"the result of {name} is too large") from None
    except ValueError:
        raise bind_error(f"{name} is not defined for {describe(arguments[0])}") from None
