"""The walk over a checked plan whose text is written in another language.

The plan's own text is never taken over: each node of its tree is written anew, and only what the
language has can be written. How each is spelled: in Python `plan_function.py`, in C++
`plan_struct.py`.
"""

import abc
import ast
from collections.abc import Iterable, Mapping, Sequence

from kernel_foundry.domain.evaluation import Setting
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.plan.configuration import chosen_values
from kernel_foundry.plan.dtypes import canonical_dtype
from kernel_foundry.plan.names import NameTable
from kernel_foundry.plan.tree import Expression, Plan, PlanFunction, TuneValue
from kernel_foundry.plan.vocabulary import (
    ARITHMETIC_FUNCTIONS,
    DEVICE_ATTRIBUTES,
    MEMORY_FUNCTIONS,
    TENSOR_ATTRIBUTES,
    TENSOR_METHODS,
)

Names = frozenset[str] | None
"""Locals of a function; None in CONST and WHERE, which see all names of the task instead."""


class PlanWriter(abc.ABC):
    """Writes one plan.

    Args:
        plan: Parsed and checked.
        names: The task's name table; sizes do not matter.
        configuration: Values of TUNE.
    """

    def __init__(self, plan: Plan, names: NameTable, configuration: Iterable[Setting]) -> None:
        self.plan = plan
        self.chosen: Mapping[str, TuneValue] = chosen_values(plan, configuration)
        self.in_prepare = False
        self._names = names
        self._shared = {*plan.macro_names, *(constant.name for constant in plan.constants)}
        self._helpers = {helper.name for helper in plan.helpers}
        self._is_entry = False

    def constants(self) -> list[tuple[str, str]]:
        """Return the names of top-level constants with their values, in order."""
        none: frozenset[str] = frozenset()
        return [(c.name, self.expression(c.node, none)) for c in self.plan.constants]

    def macros_and_conditions(self) -> list[tuple[str, str]]:
        """Return CONST as names and values, and WHERE as conditions named "", in order."""
        known = {constant.name for constant in self.plan.const}
        late = [
            w
            for w in self.plan.where
            if known & {n.id for n in ast.walk(w.node) if isinstance(n, ast.Name)}
        ]
        early = [w for w in self.plan.where if w not in late]
        return [
            *(("", self._condition(where)) for where in early),
            *((c.name, self.expression(c.node, None)) for c in self.plan.const),
            *(("", self._condition(where)) for where in late),
        ]

    def body(self, function: PlanFunction) -> list[str]:
        """Return the lines of a function's body; none for an empty one."""
        self._is_entry = function is self.plan.launch or function is self.plan.prepare
        self.in_prepare = function is self.plan.prepare
        local = self.assigned(function) | set(function.parameters)
        written = self._statements(function.body, local)
        self.in_prepare = False
        return written

    @staticmethod
    def assigned(function: PlanFunction) -> frozenset[str]:
        """Return the names that a function assigns."""
        nodes = (node for statement in function.body for node in ast.walk(statement))
        return frozenset(
            n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        )

    def _condition(self, condition: Expression) -> str:
        return self.requirement(self.expression(condition.node, None), condition.text)

    def _statements(self, nodes: Iterable[ast.stmt], local: frozenset[str]) -> list[str]:
        return [line for node in nodes for line in self._statement(node, local)]

    def _statement(self, node: ast.stmt, local: frozenset[str]) -> list[str]:
        match node:
            case ast.Expr(value=ast.Call() as call):
                return [self._call_statement(call, local)]
            case ast.Assign(targets=targets, value=value):
                return self.assignment(targets, self.expression(value, local))
            case ast.AugAssign(target=ast.Name() as target, op=operation, value=value):
                name = ast.Name(id=target.id, ctx=ast.Load())
                whole = ast.BinOp(left=name, op=operation, right=value)
                return self.assignment([target], self.expression(whole, local))
            case ast.If(test=test, body=body, orelse=orelse):
                return self.choice(
                    self.expression(test, local),
                    self._statements(body, local),
                    self._statements(orelse, local),
                )
            case ast.For(target=target, iter=items, body=body):
                return self.loop(
                    target, self.expression(items, local), self._statements(body, local)
                )
            case ast.Return(value=value):
                is_ignored = self._is_entry or value is None
                return [self.end("" if is_ignored or value is None else
                                 self.expression(value, local))]  # fmt: skip
            case ast.Assert(test=test):
                return [self.requirement(self.expression(test, local), ast.unparse(test))]
            case ast.Expr() | ast.Pass():
                return []
            case _:
                raise unknown(node)

    def _call_statement(self, call: ast.Call, local: frozenset[str]) -> str:
        if isinstance(call.func, ast.Subscript):
            kernel, setup = call.func.value, call.func.slice
            if not isinstance(kernel, ast.Name):
                raise unknown(call)
            given, named = self._given(call, local)
            return self.launch(kernel.id, self.expression(setup, local), given, named)
        if isinstance(call.func, ast.Name) and call.func.id == "require":
            test = call.args[0]
            return self.requirement(self.expression(test, local), ast.unparse(test))
        return self.statement(self.expression(call, local))

    def _given(self, call: ast.Call, local: Names) -> tuple[list[str], list[tuple[str, str]]]:
        named = [(k.arg or "", self.expression(k.value, local)) for k in call.keywords]
        return [self.expression(argument, local) for argument in call.args], named

    def expression(self, node: ast.expr, local: Names) -> str:
        """Return the text of an expression.

        Raises:
            InvalidArgumentError: it has what no plan has, or what the language has not.
        """

        def write(part: ast.expr) -> str:
            return self.expression(part, local)

        match node:
            case ast.Constant(value=bool() | int() | float() | str() | None as value):
                return self.constant(value)
            case ast.Name(id=name):
                return self._name(name, local)
            case ast.Tuple(elts=items):
                return self.tuple_of([write(item) for item in items])
            case ast.BinOp(left=left, op=operation, right=right):
                return self.operation(operation, write(left), write(right))
            case ast.UnaryOp(op=sign, operand=operand):
                return self.sign(sign, write(operand))
            case ast.Compare(left=left, ops=operations, comparators=others):
                pairs = zip(operations, others, strict=True)
                return self.comparison(write(left), [(o, write(other)) for o, other in pairs])
            case ast.BoolOp(op=operator, values=values):
                return self.decision(operator, [write(value) for value in values])
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self.alternative(write(test), write(body), write(orelse))
            case ast.Attribute(value=ast.Name(id="torch"), attr=name) if canonical_dtype(name):
                return self.constant(canonical_dtype(name))
            case ast.Attribute(value=ast.Name(id="device"), attr=name) if (
                name in DEVICE_ATTRIBUTES and "device" not in (local or ())
            ):
                return self.device_fact(name)
            case ast.Attribute(value=owner, attr=name) if name in TENSOR_ATTRIBUTES:
                return self.attribute(write(owner), name)
            case ast.Subscript(value=ast.Name(id="params"), slice=path):
                return self.parameter(write(path))
            case ast.Subscript(value=owner, slice=ast.Slice() as part):
                bounds = (part.lower, part.upper, part.step)
                return self.part(write(owner), ["" if b is None else write(b) for b in bounds])
            case ast.Subscript(value=owner, slice=index):
                return self.item(write(owner), write(index))
            case ast.Call():
                return self._call(node, local)
            case _:
                raise unknown(node)

    def _name(self, name: str, local: Names) -> str:
        if (local is not None and name in local) or name in self._shared:
            return self.variable(name)
        if local is None and self._names.lookup(name) is not None:
            return self.entry(name)
        dtype = canonical_dtype(name)
        if dtype == name:
            return self.constant(dtype)
        raise InvalidArgumentError(f"the plan names {name!r}, which nothing defines", field="plan")

    def _call(self, node: ast.Call, local: Names) -> str:
        given, named = self._given(node, local)
        match node.func:
            case ast.Attribute(value=ast.Name(id="ops"), attr=name):
                return self.library(name, given, named)
            case ast.Attribute(value=owner, attr=name) if name in TENSOR_METHODS:
                return self.method(self.expression(owner, local), name, given)
            case ast.Name(id=name) if name in ARITHMETIC_FUNCTIONS or name == "range":
                return self.function(name, given)
            case ast.Name(id=name) if name in MEMORY_FUNCTIONS:
                return self.memory(name, given, named)
            case ast.Name(id=name) if name in self._helpers:
                return self.helper(name, given, named)
            case _:
                raise unknown(node)

    @abc.abstractmethod
    def entry(self, name: str) -> str:
        """Return a name of the task."""

    @abc.abstractmethod
    def variable(self, name: str) -> str:
        """Return a name of the plan's own."""

    @abc.abstractmethod
    def assignment(self, targets: Sequence[ast.expr], value: str) -> list[str]:
        """Return the lines that assign a value to names, or its items to a tuple of them."""

    @abc.abstractmethod
    def choice(self, test: str, body: list[str], orelse: list[str]) -> list[str]:
        """Return the lines of `if`; bodies may be empty."""

    @abc.abstractmethod
    def loop(self, target: ast.expr, items: str, body: list[str]) -> list[str]:
        """Return the lines of `for`; the body may be empty."""

    @abc.abstractmethod
    def end(self, value: str) -> str:
        """Return the line of `return`; "" for no value."""

    @abc.abstractmethod
    def requirement(self, test: str, words: str) -> str:
        """Return the line that goes on where a condition holds."""

    @abc.abstractmethod
    def statement(self, call: str) -> str:
        """Return the line of a call whose value is not used."""

    @abc.abstractmethod
    def launch(
        self, kernel: str, setup: str, given: list[str], named: list[tuple[str, str]]
    ) -> str:
        """Return the line of a launch."""

    @abc.abstractmethod
    def constant(self, value: float | str | None) -> str:
        """Return a literal."""

    @abc.abstractmethod
    def tuple_of(self, items: list[str]) -> str:
        """Return a tuple."""

    @abc.abstractmethod
    def operation(self, operation: ast.operator, left: str, right: str) -> str:
        """Return an arithmetic operation."""

    @abc.abstractmethod
    def sign(self, sign: ast.unaryop, operand: str) -> str:
        """Return an operation with one operand."""

    @abc.abstractmethod
    def comparison(self, left: str, others: list[tuple[ast.cmpop, str]]) -> str:
        """Return a comparison, or a chain of them."""

    @abc.abstractmethod
    def decision(self, operator: ast.boolop, values: list[str]) -> str:
        """Return `and` or `or`."""

    @abc.abstractmethod
    def alternative(self, test: str, body: str, orelse: str) -> str:
        """Return a conditional expression."""

    @abc.abstractmethod
    def device_fact(self, name: str) -> str:
        """Return a fact about the device."""

    @abc.abstractmethod
    def attribute(self, owner: str, name: str) -> str:
        """Return an attribute of a tensor."""

    @abc.abstractmethod
    def parameter(self, path: str) -> str:
        """Return a weight by its dotted name."""

    @abc.abstractmethod
    def part(self, owner: str, bounds: list[str]) -> str:
        """Return a slice of a tuple; bounds that are "" are left out."""

    @abc.abstractmethod
    def item(self, owner: str, index: str) -> str:
        """Return an item of a tuple."""

    @abc.abstractmethod
    def library(self, name: str, given: list[str], named: list[tuple[str, str]]) -> str:
        """Return a library call."""

    @abc.abstractmethod
    def method(self, owner: str, name: str, given: list[str]) -> str:
        """Return a call of a tensor's method."""

    @abc.abstractmethod
    def function(self, name: str, given: list[str]) -> str:
        """Return a call of an arithmetic function, or of `range`."""

    @abc.abstractmethod
    def memory(self, name: str, given: list[str], named: list[tuple[str, str]]) -> str:
        """Return new memory."""

    @abc.abstractmethod
    def helper(self, name: str, given: list[str], named: list[tuple[str, str]]) -> str:
        """Return a call of a helper."""


def unknown(node: ast.AST) -> InvalidArgumentError:
    """Return the error of a node that no plan has."""
    kind = type(node).__name__
    return InvalidArgumentError(f"the plan has a {kind}, which no plan has", field="plan")
