"""Evaluates the expressions of a checked plan, node by node, within a step budget.

Python's own evaluation is never used. Memory functions and helpers are calls that the interpreter
provides.
"""

from __future__ import annotations

import abc
import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from kernel_foundry.closest_name import likely
from kernel_foundry.plan import arithmetic
from kernel_foundry.plan.dtypes import canonical_dtype
from kernel_foundry.plan.errors import PlanError, bind_error, limit_error, policy_error, short
from kernel_foundry.plan.limits import EXPRESSION_NODES_PER_STEP, MAX_STEPS
from kernel_foundry.plan.names import NameTable, ScalarName, TensorName
from kernel_foundry.plan.syntax import is_name
from kernel_foundry.plan.values import DeviceLimits, ParameterMap, PlanTensor, Value, describe
from kernel_foundry.plan.vocabulary import (
    ARITHMETIC_FUNCTIONS,
    DEVICE_ATTRIBUTES,
    NO_VIEWS,
    TENSOR_ATTRIBUTES,
)


@dataclass(slots=True)
class StepLimit:
    """Counts interpreter steps of one evaluation."""

    nodes: int = 0
    """Expression nodes evaluated, plus `EXPRESSION_NODES_PER_STEP` for each statement."""

    def spend(self, nodes: int, line: int | None) -> None:
        """Count `nodes`.

        Raises:
            PlanError: `limit`, when the budget is used up.
        """
        self.nodes += nodes
        if self.nodes > MAX_STEPS * EXPRESSION_NODES_PER_STEP:
            raise limit_error(f"the plan takes more than {MAX_STEPS} steps", line)


@dataclass(frozen=True, slots=True, kw_only=True)
class NameScope:
    """The values of names in one function: its locals first, then the names of all functions."""

    shared: Mapping[str, Value]
    """TUNE, CONST and top-level constants."""
    local: dict[str, Value] = field(default_factory=dict)
    names: NameTable | None = None
    """Given where names of the table are visible without being parameters: CONST and WHERE."""


class ExpressionEvaluator(abc.ABC):
    """Evaluates expressions.

    Args:
        names: The name table, for `params[...]`; None before a workload is chosen.
        device: The device, for `device.…`; None before one is chosen.
        budget: Shared by all evaluations of one bind.
    """

    def __init__(
        self, *, names: NameTable | None, device: DeviceLimits | None, budget: StepLimit
    ) -> None:
        self.names = names
        self.device = device
        self.budget = budget

    @abc.abstractmethod
    def call_function(
        self, name: str, arguments: tuple[Value, ...], keywords: Mapping[str, Value], line: int
    ) -> Value:
        """Return the result of a memory function or a helper."""

    @abc.abstractmethod
    def call_library(
        self, name: str, arguments: tuple[Value, ...], keywords: Mapping[str, Value], line: int
    ) -> Value:
        """Return the result of a library call."""

    def evaluate(self, node: ast.expr, scope: NameScope) -> Value:
        """Return the value of an expression.

        Raises:
            PlanError: With the node's line.
        """
        self.budget.spend(1, node.lineno)
        try:
            return self._evaluate(node, scope)
        except PlanError as error:
            raise error.at(node.lineno) from None

    def _evaluate(self, node: ast.expr, scope: NameScope) -> Value:
        match node:
            case ast.Constant(value=bool() | int() | float() | str() | None as value):
                return value
            case ast.Name(id=name):
                return self._name(name, scope)
            case ast.Tuple(elts=items):
                return arithmetic.make_tuple(tuple(self.evaluate(item, scope) for item in items))
            case ast.BinOp(left=left, op=operation, right=right):
                return arithmetic.binary(
                    operation, self.evaluate(left, scope), self.evaluate(right, scope)
                )
            case ast.UnaryOp(op=sign, operand=operand):
                return arithmetic.unary(sign, self.evaluate(operand, scope))
            case ast.Compare():
                return self._compare(node, scope)
            case ast.BoolOp():
                return self._boolean(node, scope)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                chosen = body if self.condition(test, scope) else orelse
                return self.evaluate(chosen, scope)
            case ast.Attribute():
                return self._attribute(node, scope)
            case ast.Subscript():
                return self._subscript(node, scope)
            case ast.Call():
                return self._call(node, scope)
            case _:
                raise policy_error(f"{type(node).__name__} is not available")

    def condition(self, node: ast.expr, scope: NameScope) -> bool:
        """Return whether a condition holds.

        Raises:
            PlanError: With the node's line.
        """
        value = self.evaluate(node, scope)
        try:
            return arithmetic.truth(value)
        except PlanError as error:
            raise error.at(node.lineno) from None

    def _name(self, name: str, scope: NameScope) -> Value:
        if name in scope.local:
            return scope.local[name]
        if name in scope.shared:
            return scope.shared[name]
        if scope.names is not None:
            entry = scope.names.lookup(name)
            if entry is not None:
                return table_value(entry)
        if name == "device":
            if self.device is None:
                raise bind_error("device is not known here")
            return self.device
        if name == "params":
            return ParameterMap()
        dtype = canonical_dtype(name)
        if dtype is not None and name == dtype:
            return dtype
        raise bind_error(self._unknown_name(name, scope))

    def _unknown_name(self, name: str, scope: NameScope) -> str:
        known = sorted({*scope.local, *scope.shared})
        if scope.names is not None:
            known += scope.names.all_names
        elif self.names is not None and self.names.lookup(name) is not None:
            return f"{short(name)!r} must be listed as a parameter to be used"
        return f"there is no name {short(name)!r} here{short(likely(name, known), 400)}"

    def _compare(self, node: ast.Compare, scope: NameScope) -> bool:
        left = self.evaluate(node.left, scope)
        for operation, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(comparator, scope)
            if not arithmetic.compare(operation, left, right):
                return False
            left = right
        return True

    def _boolean(self, node: ast.BoolOp, scope: NameScope) -> Value:
        is_and = isinstance(node.op, ast.And)
        result: Value = is_and
        for item in node.values:
            result = self.evaluate(item, scope)
            if arithmetic.truth(result) != is_and:
                return result
        return result

    def _attribute(self, node: ast.Attribute, scope: NameScope) -> Value:
        if is_name(node.value, "torch") and "torch" not in scope.local:
            return canonical_dtype(node.attr)
        value = self.evaluate(node.value, scope)
        if isinstance(value, PlanTensor) and node.attr in TENSOR_ATTRIBUTES:
            facts: dict[str, Value] = {
                "shape": value.shape,
                "ndim": len(value.shape),
                "dtype": value.dtype,
            }
            return facts[node.attr]
        if isinstance(value, DeviceLimits) and node.attr in DEVICE_ATTRIBUTES:
            fact: int = getattr(value, node.attr)
            return fact
        raise bind_error(f"{describe(value)} has no .{short(node.attr)}")

    def _subscript(self, node: ast.Subscript, scope: NameScope) -> Value:
        value = self.evaluate(node.value, scope)
        if isinstance(value, PlanTensor):
            raise bind_error(NO_VIEWS)
        if isinstance(value, ParameterMap):
            return self._parameter(self._index(node.slice, scope))
        if not isinstance(value, tuple):
            raise bind_error(f"{describe(value)} has no items: only tuples and params have")
        if isinstance(node.slice, ast.Slice):
            return value[self._slice(node.slice, scope)]
        index = arithmetic.whole(self._index(node.slice, scope), "an index")
        if not -len(value) <= index < len(value):
            raise bind_error(f"index {index} is outside of a tuple of {len(value)}")
        return value[index]

    def _index(self, node: ast.expr, scope: NameScope) -> Value:
        if isinstance(node, ast.Slice):
            raise bind_error("params takes a dotted name in quotes")
        return self.evaluate(node, scope)

    def _slice(self, node: ast.Slice, scope: NameScope) -> slice:
        bounds = [
            None if bound is None else arithmetic.whole(self.evaluate(bound, scope), "a bound")
            for bound in (node.lower, node.upper, node.step)
        ]
        if bounds[2] == 0:
            raise bind_error("the step of a slice cannot be 0")
        return slice(*bounds)

    def _parameter(self, path: Value) -> Value:
        if not isinstance(path, str):
            raise bind_error("params takes a dotted name in quotes")
        if self.names is None:
            raise bind_error("params is not known here")
        entry = self.names.parameter(path)
        if entry is None:
            paths = [t.path for t in self.names.tensors if t.role in _PARAMETER_ROLES]
            raise bind_error(
                f"there is no parameter {short(path)!r}{short(likely(path, paths), 400)}"
            )
        return table_value(entry)

    def _call(self, node: ast.Call, scope: NameScope) -> Value:
        if isinstance(node.func, ast.Attribute) and not is_name(node.func.value, "ops"):
            return self._method(node, node.func, scope)
        arguments = tuple(self.evaluate(argument, scope) for argument in node.args)
        keywords = self.keywords(node, scope)
        if isinstance(node.func, ast.Attribute):
            return self.call_library(node.func.attr, arguments, keywords, node.lineno)
        assert isinstance(node.func, ast.Name)
        name = node.func.id
        if name in ARITHMETIC_FUNCTIONS:
            if keywords:
                raise bind_error(f"{name} takes no keyword arguments")
            return arithmetic.call(name, arguments)
        return self.call_function(name, arguments, keywords, node.lineno)

    def keywords(self, node: ast.Call, scope: NameScope) -> dict[str, Value]:
        """Return the keyword arguments of a call; the checker has refused `**`."""
        return {
            keyword.arg: self.evaluate(keyword.value, scope)
            for keyword in node.keywords
            if keyword.arg is not None
        }

    def _method(self, node: ast.Call, function: ast.Attribute, scope: NameScope) -> Value:
        value = self.evaluate(function.value, scope)
        if not isinstance(value, PlanTensor):
            raise bind_error(f"{describe(value)} has no .{short(function.attr)}(...)")
        if node.keywords or len(node.args) > (0 if function.attr == "numel" else 1):
            raise bind_error("write .size(i), .stride(i) or .numel()")
        if function.attr == "numel":
            return value.element_count
        sizes = value.shape if function.attr == "size" else value.strides
        if not node.args:
            return sizes
        index = arithmetic.whole(self.evaluate(node.args[0], scope), "a dimension")
        if not -len(sizes) <= index < len(sizes):
            raise bind_error(
                f"dimension {index} is outside of {value.name}, which has {len(sizes)}"
            )
        return sizes[index]


_PARAMETER_ROLES = ("parameter", "buffer")


def table_value(entry: TensorName | ScalarName) -> Value:
    """Return the plan's value of an entry of the name table."""
    if isinstance(entry, ScalarName):
        return entry.value
    return PlanTensor(kind="tensor", name=entry.name, dtype=entry.dtype, shape=entry.shape)
