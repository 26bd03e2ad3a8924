"""Checks that a Python syntax tree holds only what the launch-plan language has.

Works on the tree alone, before anything is evaluated. What is refused, and what to write instead,
is in `refusals.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Final

from kernel_foundry.plan.dtypes import canonical_dtype
from kernel_foundry.plan.errors import limit_error, policy_error, short
from kernel_foundry.plan.library import LIBRARY_OPS
from kernel_foundry.plan.limits import INT_MAX, INT_MIN, MAX_NESTING, MAX_SYNTAX_NODES
from kernel_foundry.plan.refusals import OPERATOR_REFUSALS, refuse, refuse_attribute
from kernel_foundry.plan.vocabulary import (
    DEVICE_ATTRIBUTES,
    FUNCTIONS,
    NO_VIEWS,
    OPS_FORM,
    TENSOR_ATTRIBUTES,
    TENSOR_METHODS,
)

_OPERATORS: Final = (
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow,
    ast.USub, ast.UAdd, ast.Not, ast.And, ast.Or,
    ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn,
)  # fmt: skip


def check_size(tree: ast.AST) -> None:
    """Refuse a tree too large or too deep to walk, or with a number too large to print.

    Raises:
        PlanError: `limit`, at the line of the node that is too much.
    """
    stack: list[tuple[ast.AST, int]] = [(tree, 0)]
    count = 0
    while stack:
        node, depth = stack.pop()
        count += 1
        line = getattr(node, "lineno", None)
        if count > MAX_SYNTAX_NODES:
            raise limit_error(f"the plan is too long: at most {MAX_SYNTAX_NODES} words", line)
        if depth > MAX_NESTING:
            raise limit_error(f"nested too deeply: at most {MAX_NESTING} levels", line)
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            _check_int(node.value, line)
        stack.extend((child, depth + 1) for child in ast.iter_child_nodes(node))


class SyntaxChecker:
    """Walks statements and expressions and refuses what the language does not have.

    Args:
        helpers: Names of the plan's helper functions.
        forbidden_targets: TUNE and CONST names: they may not be assigned.
    """

    def __init__(self, helpers: Iterable[str], forbidden_targets: Iterable[str]) -> None:
        self._helpers = frozenset(helpers)
        self._forbidden_targets = frozenset(forbidden_targets)
        self.calls: list[str] = []
        """Names of helpers called so far, to find recursion."""

    def check_block(self, statements: Iterable[ast.stmt], *, in_launch: bool) -> None:
        """Check the statements of a function.

        Raises:
            PlanError: `policy` or `limit`, at the line of the construct.
        """
        for statement in statements:
            self._statement(statement, in_launch=in_launch)

    def check_expression(self, node: ast.expr) -> None:
        """Check an expression and all within it.

        Raises:
            PlanError: `policy` or `limit`, at the line of the construct.
        """
        handler = self._EXPRESSIONS.get(type(node))
        if handler is None:
            refuse(node, "expressions are numbers, strings, tuples, names, arithmetic, comparisons")
        handler(self, node)

    def check_target_name(self, name: str, line: int) -> None:
        """Refuse a name that is a compile-time value already.

        Raises:
            PlanError: `policy`.
        """
        if name == "ops":
            raise policy_error(f"ops has a meaning of its own: {OPS_FORM}", line)
        if name in self._forbidden_targets:
            raise policy_error(f"{name} is a TUNE or CONST name: choose another name here", line)

    # Statements.

    def _statement(self, node: ast.stmt, *, in_launch: bool) -> None:
        match node:
            case ast.Pass():
                pass
            case ast.Expr():
                self._expression_statement(node)
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._target(target)
                self.check_expression(value)
            case ast.AugAssign(target=target, op=operator, value=value):
                if not isinstance(target, ast.Name):
                    raise policy_error("only a name can be assigned", node.lineno)
                self._target(target)
                self._operator(operator, node.lineno)
                self.check_expression(value)
            case ast.If(test=test, body=body, orelse=orelse):
                self.check_expression(test)
                self.check_block((*body, *orelse), in_launch=in_launch)
            case ast.For():
                self._for(node, in_launch=in_launch)
            case ast.Return(value=value):
                # What launch returns is ignored, so `return out, None` is harmless there.
                if value is not None and not in_launch:
                    self.check_expression(value)
            case ast.Assert(test=test, msg=message):
                self.check_expression(test)
                if message is not None:
                    self._assert_message(message)
            case _:
                refuse(node, "statements are assignment, if, for, assert, require and launches")

    def _expression_statement(self, node: ast.Expr) -> None:
        value = node.value
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return  # a docstring
        if not isinstance(value, ast.Call):
            raise policy_error(
                "this statement does nothing: a launch is kernel[grid, block](arguments)",
                node.lineno,
            )
        if isinstance(value.func, ast.Subscript):
            self._launch(value, value.func)
        elif isinstance(value.func, ast.Name) and value.func.id == "require":
            if len(value.args) != 1 or value.keywords:
                raise policy_error("require takes one condition: require(expr)", node.lineno)
            self.check_expression(value.args[0])
        elif isinstance(value.func, ast.Name) and value.func.id not in self._helpers | {*FUNCTIONS}:
            raise policy_error(
                f"there is no function {short(value.func.id)!r} here; a kernel is launched as "
                f"{short(value.func.id)}[grid, block](arguments)",
                node.lineno,
            )
        else:
            self.check_expression(value)

    def _launch(self, call: ast.Call, subscript: ast.Subscript) -> None:
        if not isinstance(subscript.value, ast.Name):
            raise policy_error("a launch starts with the kernel's name: name[grid, block](...)",
                               call.lineno)  # fmt: skip
        parts = subscript.slice
        if not isinstance(parts, ast.Tuple) or not 2 <= len(parts.elts) <= 4:
            raise policy_error(
                "a launch is kernel[grid, block](...), kernel[grid, block, shared_bytes](...) or "
                'kernel[grid, block, shared_bytes, "cooperative"](...)',
                call.lineno,
            )
        for part in parts.elts:
            self.check_expression(part)
        self._arguments(call)

    def _for(self, node: ast.For, *, in_launch: bool) -> None:
        self._target(node.target)
        if node.orelse:
            raise policy_error("else after for is not available", node.lineno)
        source = node.iter
        if isinstance(source, ast.Call) and is_name(source.func, "range"):
            if not 1 <= len(source.args) <= 3 or source.keywords:
                raise policy_error("range takes 1 to 3 numbers", node.lineno)
            for argument in source.args:
                self.check_expression(argument)
        elif isinstance(source, ast.Call):
            raise policy_error("for runs over range(...) or a tuple", node.lineno)
        else:
            self.check_expression(source)
        self.check_block(node.body, in_launch=in_launch)

    def _target(self, node: ast.expr) -> None:
        if isinstance(node, ast.Name):
            self.check_target_name(node.id, node.lineno)
        elif isinstance(node, ast.Tuple):
            for item in node.elts:
                self._target(item)
        elif isinstance(node, ast.Subscript):
            raise policy_error("an item cannot be assigned: kernels write tensors, plans do not",
                               node.lineno)  # fmt: skip
        else:
            refuse(node, "only a name or a tuple of names can be assigned")

    def _assert_message(self, node: ast.expr) -> None:
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            raise policy_error("the message of assert is a plain string", node.lineno)

    # Expressions.

    def _constant(self, node: ast.Constant) -> None:
        value = node.value
        if not isinstance(value, int | float | str):
            raise policy_error(
                f"{short(repr(value))} is not available: numbers, True, False and strings are"
                + ("; None only as an argument of ops" if value is None else ""),
                node.lineno,
            )

    def _name(self, node: ast.Name) -> None:
        if node.id == "ops":
            raise policy_error(OPS_FORM, node.lineno)

    def _tuple(self, node: ast.Tuple) -> None:
        for item in node.elts:
            self.check_expression(item)

    def _binary(self, node: ast.BinOp) -> None:
        self._operator(node.op, node.lineno)
        self.check_expression(node.left)
        self.check_expression(node.right)

    def _unary(self, node: ast.UnaryOp) -> None:
        self._operator(node.op, node.lineno)
        self.check_expression(node.operand)

    def _compare(self, node: ast.Compare) -> None:
        for operator in node.ops:
            self._operator(operator, node.lineno)
        for value in (node.left, *node.comparators):
            self.check_expression(value)

    def _boolean(self, node: ast.BoolOp) -> None:
        for value in node.values:
            self.check_expression(value)

    def _conditional(self, node: ast.IfExp) -> None:
        for value in (node.test, node.body, node.orelse):
            self.check_expression(value)

    def _attribute(self, node: ast.Attribute) -> None:
        if is_name(node.value, "ops"):
            raise policy_error(OPS_FORM, node.lineno)
        if is_name(node.value, "torch"):
            if canonical_dtype(node.attr) is None:
                raise policy_error(
                    f"torch.{short(node.attr)} is not available: only dtypes are, such as "
                    "torch.float32",
                    node.lineno,
                )
            return
        if node.attr in TENSOR_METHODS:
            raise policy_error(f"{node.attr} is called: .{node.attr}(...)", node.lineno)
        if is_name(node.value, "device") and node.attr not in DEVICE_ATTRIBUTES:
            refuse_attribute(node)
        if node.attr not in (*TENSOR_ATTRIBUTES, *DEVICE_ATTRIBUTES):
            refuse_attribute(node)
        self.check_expression(node.value)

    def _subscript(self, node: ast.Subscript) -> None:
        self.check_expression(node.value)
        if isinstance(node.slice, ast.Slice):
            for bound in (node.slice.lower, node.slice.upper, node.slice.step):
                if bound is not None:
                    self.check_expression(bound)
        elif isinstance(node.slice, ast.Tuple):
            raise policy_error(f"only one index is available here; {NO_VIEWS}", node.lineno)
        else:
            self.check_expression(node.slice)

    def _call(self, node: ast.Call) -> None:
        function = node.func
        if isinstance(function, ast.Subscript):
            raise policy_error("a launch is a statement of its own and has no value", node.lineno)
        if isinstance(function, ast.Attribute):
            if is_name(function.value, "ops"):
                self._library_call(node, function)
                return
            if function.attr not in TENSOR_METHODS:
                refuse_attribute(function)
            self.check_expression(function.value)
        elif isinstance(function, ast.Name):
            self._called_name(function)
        else:
            raise policy_error("only named functions can be called", node.lineno)
        self._arguments(node)

    def _library_call(self, node: ast.Call, function: ast.Attribute) -> None:
        if function.attr not in LIBRARY_OPS:
            raise policy_error(
                f"there is no library call ops.{short(function.attr)}: there are "
                f"{', '.join(LIBRARY_OPS)}",
                function.lineno,
            )
        self._arguments(node, may_be_none=True)

    def _called_name(self, function: ast.Name) -> None:
        name = function.id
        if name in self._helpers:
            self.calls.append(name)
        elif name in ("range", "require"):
            place = "in for" if name == "range" else "as a statement of its own"
            raise policy_error(f"{name}(...) is only available {place}", function.lineno)
        elif name not in FUNCTIONS:
            raise policy_error(
                f"there is no function {short(name)!r}: available are {', '.join(FUNCTIONS)} and "
                "the plan's own helpers",
                function.lineno,
            )

    def _arguments(self, call: ast.Call, *, may_be_none: bool = False) -> None:
        for keyword in call.keywords:
            if keyword.arg is None:
                raise policy_error("** is not available: name every argument", call.lineno)
        for value in (*call.args, *(keyword.value for keyword in call.keywords)):
            is_none = isinstance(value, ast.Constant) and value.value is None
            if not (may_be_none and is_none):
                self.check_expression(value)

    def _operator(self, operator: ast.AST, line: int) -> None:
        if not isinstance(operator, _OPERATORS):
            raise policy_error(OPERATOR_REFUSALS[type(operator)], line)

    _EXPRESSIONS: Final[dict[type[ast.expr], Callable[..., None]]] = {
        ast.Constant: _constant,
        ast.Name: _name,
        ast.Tuple: _tuple,
        ast.BinOp: _binary,
        ast.UnaryOp: _unary,
        ast.Compare: _compare,
        ast.BoolOp: _boolean,
        ast.IfExp: _conditional,
        ast.Attribute: _attribute,
        ast.Subscript: _subscript,
        ast.Call: _call,
    }


def _check_int(value: int, line: int | None) -> None:
    # Before anything prints it: Python refuses to write out a number of thousands of digits.
    if not INT_MIN <= value <= INT_MAX:
        raise limit_error("a whole number must fit 64 bits", line)


def is_name(node: ast.expr, name: str) -> bool:
    """Return whether `node` is just the name `name`."""
    return isinstance(node, ast.Name) and node.id == name
