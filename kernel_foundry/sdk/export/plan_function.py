"""A checked launch plan as the text of a Python function, for an exported file.

The plan's own text is never taken over: each node of its tree is written anew, and only what the
language has can be written. The function asks a recorder (`runtime/plan.py`) for memory and
launches.
"""

import ast
from collections.abc import Iterable, Mapping
from typing import Final

from kernel_foundry.domain.evaluation import Setting
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.plan.configuration import chosen_values
from kernel_foundry.plan.dtypes import canonical_dtype
from kernel_foundry.plan.names import NameTable
from kernel_foundry.plan.tree import Expression, Plan, PlanFunction
from kernel_foundry.plan.vocabulary import (
    ARITHMETIC_FUNCTIONS,
    DEVICE_ATTRIBUTES,
    MEMORY_FUNCTIONS,
    TENSOR_ATTRIBUTES,
    TENSOR_METHODS,
)

_OWN: Final = frozenset(
    {"do", "device", "names", "made", "math", "power", "locals", "range", *ARITHMETIC_FUNCTIONS}
)
"""What the text itself names; a plan's own name like these gets another one."""
_MATHEMATICS: Final = ("sqrt", "exp", "log2")


def plan_function(plan: Plan, name: str, names: NameTable, configuration: Iterable[Setting]) -> str:
    """Return the text of a function `name(do, device, names)` that does what the plan does.

    It returns the macros; a function without arguments that runs `prepare`, or None; and one that
    runs `launch` on what `prepare` has made.

    Args:
        plan: Parsed and checked.
        name: Of the function.
        names: The task's; sizes do not matter.
        configuration: Values of TUNE.
    """
    return _Writer(plan, names).text(name, chosen_values(plan, configuration))


class _Writer:
    """Writes one plan.

    Args:
        plan: The plan.
        names: The task's name table.
    """

    def __init__(self, plan: Plan, names: NameTable) -> None:
        self._plan = plan
        self._names = names
        self._shared = {*plan.macro_names, *(constant.name for constant in plan.constants)}
        self._helpers = {helper.name for helper in plan.helpers}
        self._is_entry = False
        self._in_prepare = False

    def text(self, name: str, configuration: Mapping[str, object]) -> str:
        """Return the whole function."""
        plan = self._plan
        none: frozenset[str] = frozenset()
        body = [f"{c.name} = {self._expression(c.node, none)}" for c in plan.constants]
        body += [f"{key} = {value!r}" for key, value in configuration.items()]
        for function in plan.helpers:
            body += self._function(function)
        known = {constant.name for constant in plan.const}
        late = [
            w
            for w in plan.where
            if known & {n.id for n in ast.walk(w.node) if isinstance(n, ast.Name)}
        ]
        body += [self._condition(w) for w in plan.where if w not in late]
        body += [f"{c.name} = {self._table_expression(c.node)}" for c in plan.const]
        body += [self._condition(where) for where in late]
        handed = self._assigned(plan.prepare) if plan.prepare else frozenset()
        if plan.prepare:
            self._in_prepare = True
            body += self._function(plan.prepare)
            self._in_prepare = False
        body += self._function(plan.launch)
        macros = ", ".join(f"{key!r}: {key}" for key in plan.macro_names)
        begin = "None"
        if plan.prepare:
            begin = f"lambda: prepare({', '.join(map(self._entry, plan.prepare.parameters))})"
        values = [
            f"made[{_local(p)!r}]" if p in handed else self._entry(p)
            for p in plan.launch.parameters
        ]
        body.append(f"return {{{macros}}}, {begin}, lambda made: launch({', '.join(values)})")
        head = [f"def {name}(do, device, names):"]
        return "\n".join([*head, *(f"    {line}" for part in body for line in part.split("\n"))])

    def _condition(self, condition: Expression) -> str:
        return f"do.require({self._table_expression(condition.node)}, {condition.text!r})"

    def _entry(self, name: str) -> str:
        return f"names[{name!r}]"

    def _function(self, function: PlanFunction) -> list[str]:
        self._is_entry = function is self._plan.launch or function is self._plan.prepare
        local = self._assigned(function) | set(function.parameters)
        lines = [f"def {_local(function.name)}({', '.join(map(_local, function.parameters))}):"]
        written = [line for node in function.body for line in self._statement(node, local)]
        if self._in_prepare:
            written.append("return locals()")
        return ["\n".join([*lines, *(f"    {line}" for line in written or ["pass"])])]

    @staticmethod
    def _assigned(function: PlanFunction) -> frozenset[str]:
        nodes = (node for statement in function.body for node in ast.walk(statement))
        return frozenset(
            n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        )

    def _block(self, nodes: Iterable[ast.stmt], local: frozenset[str]) -> list[str]:
        written = [line for node in nodes for line in self._statement(node, local)]
        return [f"    {line}" for line in written or ["pass"]]

    def _statement(self, node: ast.stmt, local: frozenset[str]) -> list[str]:
        match node:
            case ast.Expr(value=ast.Call() as call):
                return [self._call_statement(call, local)]
            case ast.Assign(targets=targets, value=value):
                left = "".join(f"{self._target(target)} = " for target in targets)
                return [left + self._expression(value, local)]
            case ast.AugAssign(target=ast.Name() as target, op=operation, value=value):
                name = ast.Name(id=target.id, ctx=ast.Load())
                whole = ast.BinOp(left=name, op=operation, right=value)
                return [f"{_local(target.id)} = {self._expression(whole, local)}"]
            case ast.If(test=test, body=body, orelse=orelse):
                lines = [f"if {self._expression(test, local)}:", *self._block(body, local)]
                return [*lines, "else:", *self._block(orelse, local)] if orelse else lines
            case ast.For(target=target, iter=items, body=body):
                head = f"for {self._target(target)} in {self._expression(items, local)}:"
                return [head, *self._block(body, local)]
            case ast.Return(value=value):
                if self._is_entry or value is None:
                    return ["return locals()" if self._in_prepare else "return None"]
                return [f"return {self._expression(value, local)}"]
            case ast.Assert(test=test):
                return [self._requirement(test, local)]
            case ast.Expr() | ast.Pass():
                return []
            case _:
                raise _unknown(node)

    def _call_statement(self, call: ast.Call, local: frozenset[str]) -> str:
        if isinstance(call.func, ast.Subscript):
            kernel, setup = call.func.value, call.func.slice
            if not isinstance(kernel, ast.Name):
                raise _unknown(call)
            given = [repr(kernel.id), self._expression(setup, local), *self._given(call, local)]
            return f"do.launch({', '.join(given)})"
        if isinstance(call.func, ast.Name) and call.func.id == "require":
            return self._requirement(call.args[0], local)
        return self._expression(call, local)

    def _requirement(self, test: ast.expr, local: frozenset[str]) -> str:
        return f"do.require({self._expression(test, local)}, {ast.unparse(test)!r})"

    def _given(self, call: ast.Call, local: frozenset[str]) -> list[str]:
        values = [self._expression(argument, local) for argument in call.args]
        named = [(k.arg, self._expression(k.value, local)) for k in call.keywords]
        # By name in a dict: a C parameter may be called as a word of Python's.
        pairs = ", ".join(f"{key!r}: {value}" for key, value in named)
        return [*values, f"**{{{pairs}}}"] if named else values

    def _target(self, node: ast.expr) -> str:
        match node:
            case ast.Name(id=name):
                return _local(name)
            case ast.Tuple(elts=items):
                return f"({', '.join(self._target(item) for item in items)},)"
            case _:
                raise _unknown(node)

    def _table_expression(self, node: ast.expr) -> str:
        """An expression of CONST and WHERE, which see all names of the task."""
        return self._expression(node, None)

    def _expression(self, node: ast.expr, local: frozenset[str] | None) -> str:
        def write(part: ast.expr) -> str:
            return self._expression(part, local)

        match node:
            case ast.Constant(value=bool() | int() | float() | str() | None as value):
                if isinstance(value, float) and repr(value) in ("inf", "nan"):
                    return f"float({repr(value)!r})"
                return repr(value)
            case ast.Name(id=name):
                return self._name(name, local)
            case ast.Tuple(elts=items):
                return f"({''.join(f'{write(item)}, ' for item in items).strip()})"
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return f"power({write(left)}, {write(right)})"
            case ast.BinOp(left=left, op=operation, right=right):
                return f"({write(left)} {_SYMBOLS[type(operation)]} {write(right)})"
            case ast.UnaryOp(op=sign, operand=operand):
                return f"({_SYMBOLS[type(sign)]}{write(operand)})"
            case ast.Compare(left=left, ops=operations, comparators=others):
                pairs = zip(operations, others, strict=True)
                rest = (f" {_SYMBOLS[type(o)]} {write(other)}" for o, other in pairs)
                return f"({write(left)}{''.join(rest)})"
            case ast.BoolOp(op=operation, values=values):
                word = f" {_SYMBOLS[type(operation)]} "
                return f"({word.join(map(write, values))})"
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return f"({write(body)} if {write(test)} else {write(orelse)})"
            case ast.Attribute(value=ast.Name(id="torch"), attr=name) if _is_dtype(name):
                return repr(canonical_dtype(name))
            case ast.Attribute(value=owner, attr=name) if name in _ATTRIBUTES:
                return f"{write(owner)}.{name}"
            case ast.Subscript(value=ast.Name(id="params"), slice=path):
                return f"do.parameter({write(path)})"
            case ast.Subscript(value=owner, slice=ast.Slice() as part):
                bounds = [part.lower, part.upper, part.step]
                return f"{write(owner)}[{':'.join('' if b is None else write(b) for b in bounds)}]"
            case ast.Subscript(value=owner, slice=index):
                return f"{write(owner)}[{write(index)}]"
            case ast.Call():
                return self._call(node, local)
            case _:
                raise _unknown(node)

    def _name(self, name: str, local: frozenset[str] | None) -> str:
        if (local is not None and name in local) or name in self._shared:
            return _local(name)
        if local is None and self._names.lookup(name) is not None:
            return self._entry(name)
        if name == "device":
            return name
        dtype = canonical_dtype(name)
        if dtype == name:
            return repr(dtype)
        raise InvalidArgumentError(f"the plan names {name!r}, which nothing defines", field="plan")

    def _call(self, node: ast.Call, local: frozenset[str] | None) -> str:
        given = ", ".join(self._given(node, local or frozenset()) if local is not None
                          else [self._expression(a, None) for a in node.args])  # fmt: skip
        match node.func:
            case ast.Attribute(value=ast.Name(id="ops"), attr=name):
                return f"do.library({name!r}, {given})"
            case ast.Attribute(value=owner, attr=name) if name in TENSOR_METHODS:
                return f"{self._expression(owner, local)}.{name}({given})"
            case ast.Name(id=name) if name in _MATHEMATICS:
                return f"math.{name}({given})"
            case ast.Name(id=name) if name in ARITHMETIC_FUNCTIONS or name == "range":
                return f"{name}({given})"
            case ast.Name(id=name) if name in MEMORY_FUNCTIONS:
                return f"do.{name}({given})"
            case ast.Name(id=name) if name in self._helpers:
                return f"{_local(name)}({given})"
            case _:
                raise _unknown(node)


_ATTRIBUTES: Final = (*TENSOR_ATTRIBUTES, *DEVICE_ATTRIBUTES)
_SYMBOLS: Final[dict[type[ast.AST], str]] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.USub: "-", ast.UAdd: "+", ast.Not: "not ", ast.And: "and", ast.Or: "or",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip


def _local(name: str) -> str:
    return f"{name}_" if name in _OWN else name


def _is_dtype(name: str) -> bool:
    return canonical_dtype(name) is not None


def _unknown(node: ast.AST) -> InvalidArgumentError:
    kind = type(node).__name__
    return InvalidArgumentError(f"the plan has a {kind}, which no plan has", field="plan")
