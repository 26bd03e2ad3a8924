"""A checked plan as the text of a Python function, for an exported file.

The function asks a recorder (`runtime/plan.py`) for memory and launches. The plan's own text is
never taken over: each node of its tree is copied or replaced, and any other one is refused.
"""

import ast
import copy
import textwrap
from collections.abc import Iterable, Sequence
from typing import Final

from kernel_foundry.domain.evaluation import Setting
from kernel_foundry.plan.configuration import chosen_values, in_order
from kernel_foundry.plan.dtypes import canonical_dtype
from kernel_foundry.plan.names import NameTable
from kernel_foundry.plan.tree import Plan, PlanFunction
from kernel_foundry.plan.vocabulary import (
    ARITHMETIC_FUNCTIONS,
    DEVICE_ATTRIBUTES,
    MEMORY_FUNCTIONS,
    TENSOR_ATTRIBUTES,
    TENSOR_METHODS,
)
from kernel_foundry.sdk.export.plan_faults import undefined, unknown

_OWN: Final = frozenset(
    {"do", "device", "names", "made", "math", "power", "locals", "range", *ARITHMETIC_FUNCTIONS}
)
"""What the text itself names; a plan's own name like these gets another one."""
_MATHEMATICS: Final = ("sqrt", "exp", "log2")
_COPIED: Final = (
    ast.Assign, ast.If, ast.For, ast.Pass, ast.Constant, ast.Tuple, ast.BinOp, ast.UnaryOp,
    ast.Compare, ast.BoolOp, ast.IfExp, ast.Subscript, ast.Slice, ast.operator, ast.unaryop,
    ast.cmpop, ast.boolop, ast.expr_context,
)  # fmt: skip
"""Nodes that Python has as they are; what is in them is looked at."""


def plan_function(plan: Plan, name: str, names: NameTable, configuration: Iterable[Setting]) -> str:
    """Return the text of a function `name(do, device, names)` that does what the plan does.

    It returns the macros; a function without arguments that runs `prepare`, or None; and one that
    runs `launch` on what `prepare` has made.

    Args:
        plan: Parsed and checked.
        name: Of the function.
        names: The task's; sizes do not matter.
        configuration: Values of TUNE.

    Raises:
        InvalidArgumentError: the plan names what nothing defines, or has what no plan has.
    """
    written = _Rewriter(plan, names)
    body = [f"{_variable(c.name)} = {written.text(c.node, frozenset())}" for c in plan.constants]
    body += [f"{key} = {value!r}" for key, value in chosen_values(plan, configuration).items()]
    body += [written.function(helper) for helper in plan.helpers]
    for expression in in_order(plan):
        value = written.text(expression.node, None)
        is_const = bool(expression.name)
        required = f"do.require({value}, {expression.text!r})"
        body.append(f"{expression.name} = {value}" if is_const else required)
    macros = ", ".join(f"{key!r}: {key}" for key in plan.macro_names)
    begin, handed = "None", frozenset[str]()
    if plan.prepare:
        handed = plan.prepare.assigned
        body.append(written.function(plan.prepare))
        begin = f"lambda: prepare({', '.join(f'names[{p!r}]' for p in plan.prepare.parameters)})"
    body.append(written.function(plan.launch))
    values = [
        f"made[{_variable(p)!r}]" if p in handed else f"names[{p!r}]"
        for p in plan.launch.parameters
    ]
    body.append(f"return {{{macros}}}, {begin}, lambda made: launch({', '.join(values)})")
    return f"def {name}(do, device, names):\n" + textwrap.indent("\n".join(body), "    ")


class _Rewriter(ast.NodeTransformer):
    """Makes of a plan's nodes those of the function.

    Args:
        plan: Parsed and checked.
        names: The task's.
    """

    def __init__(self, plan: Plan, names: NameTable) -> None:
        self._plan = plan
        self._names = names
        self._shared = {*plan.macro_names, *(constant.name for constant in plan.constants)}
        self._local: frozenset[str] | None = None
        self._function: PlanFunction | None = None

    def text(self, node: ast.expr, local: frozenset[str] | None) -> str:
        """Return an expression; without locals, of CONST and WHERE, it sees the task's names."""
        self._local = local
        return _text([self.visit(copy.deepcopy(node))])

    def function(self, function: PlanFunction) -> str:
        """Return `launch`, `prepare` or a helper."""
        self._function = function
        self._local = function.assigned | set(function.parameters)
        body = [self.visit(copy.deepcopy(statement)) for statement in function.body]
        if function is self._plan.prepare:
            body.append(_all_locals())
        parameters = ", ".join(map(_variable, function.parameters))
        head = f"def {_variable(function.name)}({parameters}):\n"
        return head + textwrap.indent(_text(body or [ast.Pass()]), "    ")

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Copy a node that Python has as it is."""
        if not isinstance(node, _COPIED):
            raise unknown(node)
        return super().generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        """Keep calls alone."""
        is_call = isinstance(node.value, ast.Call)
        return ast.Expr(self.visit(node.value)) if is_call else ast.Pass()

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """Write it out, as some operations are functions."""
        if not isinstance(node.target, ast.Name):
            raise unknown(node.target)
        value = ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value)
        return self.generic_visit(ast.Assign([node.target], value))

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        """Write it as `require`."""
        words = ast.unparse(node.test)
        return ast.Expr(_call("do.require", [self.visit(node.test), ast.Constant(words)]))

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        """Return what a helper returns; of `prepare` everything is kept."""
        if self._function is self._plan.prepare:
            return _all_locals()
        if node.value is None or self._function is self._plan.launch:
            return ast.Return(None)
        return ast.Return(self.visit(node.value))

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Say what a name is: of the plan, of the task, or a dtype."""
        name, local = node.id, self._local
        if isinstance(node.ctx, ast.Store) or name in self._shared or name in (local or ()):
            return ast.Name(_variable(name), node.ctx)
        if local is None and self._names.lookup(name) is not None:
            return ast.Subscript(ast.Name("names", ast.Load()), ast.Constant(name), ast.Load())
        if canonical_dtype(name) != name:
            raise undefined(name)
        return ast.Constant(name)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Write dtypes, facts of the device and attributes of tensors."""
        if not isinstance(node.ctx, ast.Load):
            raise unknown(node)
        match node:
            case ast.Attribute(value=ast.Name(id="torch"), attr=name) if canonical_dtype(name):
                return ast.Constant(canonical_dtype(name))
            case ast.Attribute(value=ast.Name(id="device"), attr=name) if (
                name in DEVICE_ATTRIBUTES and "device" not in (self._local or ())
            ):
                return node
            case ast.Attribute(attr=name) if name in TENSOR_ATTRIBUTES:
                return ast.Attribute(self.visit(node.value), name, ast.Load())
            case _:
                raise unknown(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Write items and slices of tuples; `params` has weights by their dotted names."""
        if not isinstance(node.ctx, ast.Load):
            raise unknown(node)
        if isinstance(node.value, ast.Name) and node.value.id == "params":
            return _call("do.parameter", [self.visit(node.slice)])
        return self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Bound powers: the runtime's function does."""
        if isinstance(node.op, ast.Pow):
            return _call("power", [self.visit(node.left), self.visit(node.right)])
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Ask the recorder for launches, library calls and memory; others are Python's."""
        words = ast.unparse(node.args[0]) if node.args else ""
        given = [self.visit(argument) for argument in node.args]
        named = {k.arg or "": self.visit(k.value) for k in node.keywords}
        match node.func:
            case ast.Subscript(value=ast.Name(id=kernel), slice=setup):
                return _call("do.launch", [ast.Constant(kernel), self.visit(setup), *given], named)
            case ast.Attribute(value=ast.Name(id="ops"), attr=name):
                return _call("do.library", [ast.Constant(name), *given], named)
            case ast.Attribute(value=owner, attr=name) if name in TENSOR_METHODS:
                return ast.Call(ast.Attribute(self.visit(owner), name, ast.Load()), given, [])
            case ast.Name(id="require"):
                return _call("do.require", [*given, ast.Constant(words)])
            case ast.Name(id=name) if name in ARITHMETIC_FUNCTIONS or name == "range":
                return _call(f"math.{name}" if name in _MATHEMATICS else name, given)
            case ast.Name(id=name) if name in MEMORY_FUNCTIONS:
                return _call(f"do.{name}", given, named)
            case ast.Name(id=name) if self._plan.helper(name):
                return _call(_variable(name), given, {_variable(k): v for k, v in named.items()})
            case _:
                raise unknown(node)


def _variable(name: str) -> str:
    """What a plan's own name is called in the text."""
    return f"{name}_" if name in _OWN else name


def _call(
    function: str, given: list[ast.expr], named: dict[str, ast.expr] | None = None
) -> ast.Call:
    # By name in a dict: a C parameter may be called as a word of Python's.
    keys: list[ast.expr | None] = [ast.Constant(key) for key in named or ()]
    pairs = ast.Dict(keys, list(named.values())) if named else None
    keywords = [ast.keyword(None, pairs)] if pairs else []
    return ast.Call(ast.parse(function, mode="eval").body, given, keywords)


def _all_locals() -> ast.Return:
    return ast.Return(_call("locals", []))


def _text(nodes: Sequence[ast.stmt | ast.expr]) -> str:
    return "\n".join(ast.unparse(ast.fix_missing_locations(node)) for node in nodes)
