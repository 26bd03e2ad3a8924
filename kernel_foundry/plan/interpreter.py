"""Runs the statements of a checked plan.

The interpreter computes host-side numbers and hands launches to a recorder; it never touches a
device, a tensor's data, or Python's own evaluation. Expressions are in `expression.py`, launches in
`recorder.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from kernel_foundry.plan import arithmetic
from kernel_foundry.plan.errors import NotMeant, PlanError, PlanErrorKind, bind_error, short
from kernel_foundry.plan.expression import ExpressionEvaluator, NameScope, StepLimit
from kernel_foundry.plan.limits import EXPRESSION_NODES_PER_STEP
from kernel_foundry.plan.names import NameTable
from kernel_foundry.plan.recorder import LaunchRequest, Recorder
from kernel_foundry.plan.syntax import is_name
from kernel_foundry.plan.tree import Plan, PlanFunction
from kernel_foundry.plan.values import DeviceLimits, Value, describe
from kernel_foundry.plan.vocabulary import MEMORY_FUNCTIONS


class _Return(Exception):  # noqa: N818  control flow of the interpreted function, no error
    """Carries the value of a `return` to the call."""

    def __init__(self, value: Value) -> None:
        super().__init__()
        self.value = value


class Interpreter(ExpressionEvaluator):
    """Runs `prepare`, `launch`, helpers, and the expressions of CONST and WHERE.

    Args:
        plan: The plan.
        shared: TUNE, CONST and top-level constants; may still grow while CONST is evaluated.
        names: The name table, or None before a workload is chosen.
        device: The device, or None before one is chosen.
        recorder: Takes launches, library calls and scratch; None for CONST and WHERE.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        shared: Mapping[str, Value],
        names: NameTable | None,
        device: DeviceLimits | None,
        recorder: Recorder | None,
    ) -> None:
        super().__init__(names=names, device=device, budget=StepLimit())
        self._plan = plan
        self._shared = shared
        self._recorder = recorder

    def table_scope(self) -> NameScope:
        """Return the scope of CONST and WHERE: everything of the name table is visible."""
        return NameScope(shared=self._shared, names=self.names)

    def run(self, function: PlanFunction, arguments: Mapping[str, Value]) -> Value:
        """Run a function and return its value; None when it returns nothing.

        Raises:
            PlanError: With the line.
        """
        return self._run(function, NameScope(shared=self._shared, local=dict(arguments)))

    def run_prepare(
        self, function: PlanFunction, arguments: Mapping[str, Value]
    ) -> dict[str, Value]:
        """Run `prepare` and return the names that it assigns, for `launch`.

        Raises:
            PlanError: With the line.
        """
        scope = NameScope(shared=self._shared, local=dict(arguments))
        self._run(function, scope)
        kept = function.assigned
        return {name: value for name, value in scope.local.items() if name in kept}

    def _run(self, function: PlanFunction, scope: NameScope) -> Value:
        is_entry = function is self._plan.launch or function is self._plan.prepare
        try:
            self._block(function.body, scope, in_launch=is_entry)
        except _Return as done:
            return done.value
        return None

    def call_function(
        self, name: str, arguments: tuple[Value, ...], keywords: Mapping[str, Value], line: int
    ) -> Value:
        """Return the result of a memory function or a helper."""
        if name not in MEMORY_FUNCTIONS:
            return self._call_helper(name, arguments, keywords, line)
        if self._recorder is None:
            raise bind_error(f"{name}(...) is only available in launch, prepare and their helpers")
        if name == "local":
            return self._recorder.local(arguments, keywords)
        return self._recorder.scratch(name, arguments, keywords)

    def call_library(
        self, name: str, arguments: tuple[Value, ...], keywords: Mapping[str, Value], line: int
    ) -> Value:
        """Return the tensor that a library call fills."""
        if self._recorder is None:
            raise bind_error(f"ops.{name} is only available in launch, prepare and their helpers")
        return self._recorder.library_call(name, arguments, keywords, line)

    def _call_helper(
        self, name: str, arguments: tuple[Value, ...], keywords: Mapping[str, Value], line: int
    ) -> Value:
        helper = self._plan.helper(name)
        assert helper is not None  # the checker knows every helper
        form = f"{name}({', '.join(helper.parameters)})"
        given = dict(zip(helper.parameters, arguments, strict=False))
        if len(arguments) > len(helper.parameters) or set(keywords) & set(given):
            raise bind_error(f"too many arguments: write {form}", line)
        given.update(keywords)
        if set(given) != set(helper.parameters):
            raise bind_error(f"arguments do not match: write {form}", line)
        self.budget.spend(EXPRESSION_NODES_PER_STEP, line)
        return self.run(helper, given)

    def _block(self, statements: Iterable[ast.stmt], scope: NameScope, *, in_launch: bool) -> None:
        for statement in statements:
            self.budget.spend(EXPRESSION_NODES_PER_STEP, statement.lineno)
            try:
                self._statement(statement, scope, in_launch=in_launch)
            except PlanError as error:
                raise error.at(statement.lineno) from None

    def _statement(self, node: ast.stmt, scope: NameScope, *, in_launch: bool) -> None:
        match node:
            case ast.Expr(value=value):
                self._expression_statement(value, scope)
            case ast.Assign(targets=targets, value=value):
                result = self.evaluate(value, scope)
                for target in targets:
                    self._assign(target, result, scope)
            case ast.AugAssign(target=ast.Name(id=name) as target, op=operation, value=value):
                read = ast.copy_location(ast.Name(id=name, ctx=ast.Load()), target)
                both = ast.BinOp(left=read, op=operation, right=value)
                scope.local[name] = self.evaluate(ast.copy_location(both, node), scope)
            case ast.If(test=test, body=body, orelse=orelse):
                chosen = body if self.condition(test, scope) else orelse
                self._block(chosen, scope, in_launch=in_launch)
            case ast.For():
                self._for(node, scope, in_launch=in_launch)
            case ast.Return(value=value):
                # The value of launch and prepare is ignored, so it is not even evaluated.
                ignored = value is None or in_launch
                raise _Return(None if value is None or ignored else self.evaluate(value, scope))
            case ast.Assert(test=test, msg=message):
                self._assert(test, message, scope)
            case _:
                pass  # `pass`: the checker has refused all else

    def _expression_statement(self, node: ast.expr, scope: NameScope) -> None:
        if not isinstance(node, ast.Call):
            return  # a docstring
        if isinstance(node.func, ast.Subscript):
            self._launch(node, node.func, scope)
        elif is_name(node.func, "require"):
            if not self.condition(node.args[0], scope):
                text = short(ast.unparse(node.args[0]), 200)
                raise NotMeant(f"not meant: require({text}) is false", line=node.lineno)
        else:
            self.evaluate(node, scope)

    def _launch(self, node: ast.Call, target: ast.Subscript, scope: NameScope) -> None:
        if self._recorder is None:
            raise bind_error(
                "a launch is only available in launch, prepare and their helpers", node.lineno
            )
        assert isinstance(target.value, ast.Name)
        assert isinstance(target.slice, ast.Tuple)
        request = LaunchRequest(
            kernel=target.value.id,
            setup=tuple(self.evaluate(part, scope) for part in target.slice.elts),
            positional=tuple(self.evaluate(argument, scope) for argument in node.args),
            keywords=self.keywords(node, scope),
            line=node.lineno,
        )
        self._recorder.launch(request)

    def _for(self, node: ast.For, scope: NameScope, *, in_launch: bool) -> None:
        items: Iterable[Value]
        if isinstance(node.iter, ast.Call):
            numbers = [
                arithmetic.whole(self.evaluate(argument, scope), "range")
                for argument in node.iter.args
            ]
            if len(numbers) == 3 and numbers[2] == 0:
                raise bind_error("the step of range cannot be 0", node.lineno)
            items = range(*numbers)
        else:
            value = self.evaluate(node.iter, scope)
            if not isinstance(value, tuple):
                raise bind_error(
                    f"for runs over range(...) or a tuple, not {describe(value)}", node.lineno
                )
            items = value
        for item in items:
            self.budget.spend(EXPRESSION_NODES_PER_STEP, node.lineno)
            self._assign(node.target, item, scope)
            self._block(node.body, scope, in_launch=in_launch)

    def _assign(self, target: ast.expr, value: Value, scope: NameScope) -> None:
        if isinstance(target, ast.Name):
            if value is None:
                raise bind_error("nothing to assign: the helper returns no value", target.lineno)
            scope.local[target.id] = value
            return
        assert isinstance(target, ast.Tuple)
        if not isinstance(value, tuple):
            raise bind_error(f"cannot unpack {describe(value)}: only a tuple", target.lineno)
        if len(value) != len(target.elts):
            raise bind_error(
                f"cannot unpack {len(value)} item(s) into {len(target.elts)} name(s)",
                target.lineno,
            )
        for inner, item in zip(target.elts, value, strict=True):
            self._assign(inner, item, scope)

    def _assert(self, test: ast.expr, message: ast.expr | None, scope: NameScope) -> None:
        if self.condition(test, scope):
            return
        text = short(ast.unparse(test), 200)
        if isinstance(message, ast.Constant):
            text = f"{short(str(message.value), 400)} ({text} is false)"
        else:
            text = f"{text} is false"
        raise PlanError(f"assert: {text}", kind=PlanErrorKind.ASSERT, line=test.lineno)


def constant_values(plan: Plan) -> dict[str, Value]:
    """Return the top-level constants.

    Raises:
        PlanError: When one cannot be computed.
    """
    values: dict[str, Value] = {}
    interpreter = Interpreter(plan, shared=values, names=None, device=None, recorder=None)
    for constant in plan.constants:
        values[constant.name] = interpreter.evaluate(constant.node, NameScope(shared=values))
    return values
