"""Expressions of a checked plan as C++, over the runtime's `Value` (`cpp/value.hpp`).

Statements are written in `plan_struct.py`. The plan's own text is never taken over: each node of
its tree is written anew, and only what the language has can be written.
"""

import ast
from collections.abc import Sequence
from typing import Final

from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.plan.dtypes import canonical_dtype
from kernel_foundry.plan.names import NameTable
from kernel_foundry.plan.tree import Plan
from kernel_foundry.plan.vocabulary import (
    ARITHMETIC_FUNCTIONS,
    DEVICE_ATTRIBUTES,
    MEMORY_FUNCTIONS,
    TENSOR_ATTRIBUTES,
    TENSOR_METHODS,
)
from kernel_foundry.sdk.export.c_text import c_string, c_value
from kernel_foundry.sdk.export.plan_faults import undefined, unknown

Names = frozenset[str] | None
"""Locals of a function; None in CONST and WHERE, which see all names of the task instead."""
_SYMBOLS: Final[dict[type[ast.AST], str]] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.USub: "-", ast.UAdd: "+", ast.Eq: "==",
    ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_FUNCTIONS: Final[dict[type[ast.AST], str]] = {
    ast.Div: "divide", ast.FloorDiv: "floor_divide", ast.Mod: "modulo", ast.Pow: "power",
}  # fmt: skip
_OF_LISTS: Final = ("min", "max", "range")
"""Functions of any number of values."""


class ExpressionWriter:
    """Writes expressions of one plan.

    Args:
        plan: Parsed and checked.
        names: The task's name table; sizes do not matter.
    """

    def __init__(self, plan: Plan, names: NameTable) -> None:
        self.plan = plan
        self._names = names
        self._shared = {*plan.macro_names, *(constant.name for constant in plan.constants)}
        self._recording = frozenset({"zeros"})
        for _ in plan.helpers:
            self._recording |= {
                helper.name
                for helper in plan.helpers
                if any(_launches(node) or self._records(node) for node in helper.body)
            }

    def expression(self, node: ast.expr, local: Names) -> str:
        """Return the text of an expression.

        C++ leaves the order of operands open: those that record steps have to be alone.

        Raises:
            InvalidArgumentError: it has what no plan has, or what C++ has not.
        """
        if isinstance(node, ast.BinOp | ast.Compare | ast.Subscript | ast.Call) and (
            sum(self._records(child) for child in ast.iter_child_nodes(node)) > 1
        ):
            raise InvalidArgumentError(
                f"the plan computes {ast.unparse(node)[:100]} of two parts that launch kernels or"
                " clear memory, and C++ does not say which comes first: export it --to torch",
                field="to",
            )

        def write(part: ast.expr) -> str:
            return self.expression(part, local)

        match node:
            case ast.Constant(value=bool() | int() | float() | str() | None as value):
                return c_value(value)
            case ast.Name(id=name):
                return self._name(name, local)
            case ast.Tuple(elts=items):
                return f"tuple({{{', '.join(map(write, items))}}})"
            case ast.BinOp(left=left, op=operation, right=right):
                if function := _FUNCTIONS.get(type(operation)):
                    return f"{function}({write(left)}, {write(right)})"
                return f"({write(left)} {_SYMBOLS[type(operation)]} {write(right)})"
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return f"Value(!truth({write(operand)}))"
            case ast.UnaryOp(op=sign, operand=operand):
                return f"({_SYMBOLS[type(sign)]}{write(operand)})"
            case ast.Compare(left=left, ops=operations, comparators=others):
                return _comparison(write(left), operations, [write(other) for other in others])
            case ast.BoolOp(op=operator, values=values):
                *firsts, text = map(write, values)
                word = "both" if isinstance(operator, ast.And) else "either"
                for first in reversed(firsts):
                    text = f"{word}({first}, [&] {{ return {text}; }})"
                return text
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return f"(truth({write(test)}) ? {write(body)} : {write(orelse)})"
            case ast.Attribute(value=ast.Name(id="torch"), attr=name) if canonical_dtype(name):
                return c_value(canonical_dtype(name))
            case ast.Attribute(value=ast.Name(id="device"), attr=name) if (
                name in DEVICE_ATTRIBUTES and "device" not in (local or ())
            ):
                return f"device.{name}"
            case ast.Attribute(value=owner, attr=name) if name in TENSOR_ATTRIBUTES:
                return f"{write(owner)}.{name}()"
            case ast.Subscript(value=ast.Name(id="params"), slice=path):
                return f"parameter({write(path)})"
            case ast.Subscript(value=owner, slice=ast.Slice() as part):
                bounds = (part.lower, part.upper, part.step)
                given = ("Value()" if bound is None else write(bound) for bound in bounds)
                return f"{write(owner)}.part({', '.join(given)})"
            case ast.Subscript(value=owner, slice=index):
                return f"{write(owner)}[{write(index)}]"
            case ast.Call():
                return self._call(node, local)
            case _:
                raise unknown(node)

    def arguments(self, call: ast.Call, local: Names) -> tuple[list[str], list[tuple[str, str]]]:
        """Return the arguments of a call by position, and those by name."""
        named = [(k.arg or "", self.expression(k.value, local)) for k in call.keywords]
        return [self.expression(argument, local) for argument in call.args], named

    def _name(self, name: str, local: Names) -> str:
        if name in self._shared or name in (local or ()):
            return variable(name)
        if local is None and self._names.lookup(name) is not None:
            return entry(name)
        if canonical_dtype(name) != name:
            raise undefined(name)
        return c_value(name)

    def _call(self, node: ast.Call, local: Names) -> str:
        given, named = self.arguments(node, local)
        values = ", ".join(given)
        match node.func:
            case ast.Attribute(value=ast.Name(id="ops"), attr=name):
                raise InvalidArgumentError(
                    f"the plan calls ops.{name}, which is torch's: export it --to torch",
                    field="to",
                )
            case ast.Attribute(value=owner, attr=name) if name in TENSOR_METHODS:
                return f"{self.expression(owner, local)}.{name}({values})"
            case ast.Name(id=name) if name in _OF_LISTS:
                return f"{name}({{{values}}})"
            case ast.Name(id=name) if name in ARITHMETIC_FUNCTIONS:
                return f"{'to_int' if name == 'int' else name}({values})"
            case ast.Name(id="local"):
                raise InvalidArgumentError("CUDA has no local(...)", field="plan")
            case ast.Name(id=name) if name in MEMORY_FUNCTIONS:
                return f"run.{name}({', '.join(_in_order(('shape', 'dtype'), given, named))})"
            case ast.Name(id=name) if helper := self.plan.helper(name):
                return f"{variable(name)}({', '.join(_in_order(helper.parameters, given, named))})"
            case _:
                raise unknown(node)

    def _records(self, part: ast.AST) -> bool:
        called = {
            node.func.id
            for node in ast.walk(part)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        return bool(called & self._recording)


def entry(name: str) -> str:
    """Return a name of the task."""
    return f"name({c_string(name)})"


def variable(name: str) -> str:
    """Return a name of the plan's own: nothing of the runtime's ends so."""
    return f"{name}_"


def _launches(statement: ast.stmt) -> bool:
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)
        for node in ast.walk(statement)
    )


def _comparison(left: str, operations: Sequence[ast.cmpop], others: Sequence[str]) -> str:
    if len(others) == 1:
        return f"Value({_compared(operations[0], left, others[0])})"
    lines = [f"const Value part0 = {left};"]
    for i, (operation, other) in enumerate(zip(operations, others, strict=True)):
        held = _compared(operation, f"part{i}", f"part{i + 1}")
        lines += [f"const Value part{i + 1} = {other};", f"if (!({held})) return Value(false);"]
    return f"[&] {{ {' '.join(lines)} return Value(true); }}()"


def _compared(operation: ast.cmpop, left: str, right: str) -> str:
    if isinstance(operation, ast.In | ast.NotIn):
        return f"{'' if isinstance(operation, ast.In) else '!'}contains({right}, {left})"
    return f"{left} {_SYMBOLS[type(operation)]} {right}"


def _in_order(
    parameters: Sequence[str], given: list[str], named: list[tuple[str, str]]
) -> list[str]:
    """Values of a call in the order of its parameters, as C++ has no others."""
    by_name = dict(zip(parameters, given, strict=False)) | dict(named)
    if set(by_name) != set(parameters) or len(given) + len(named) != len(parameters):
        raise InvalidArgumentError(
            f"the plan calls a function of {', '.join(parameters)} with other arguments",
            field="plan",
        )
    return [by_name[name] for name in parameters]
