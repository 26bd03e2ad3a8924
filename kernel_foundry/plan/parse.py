"""Plan text → checked, typed `Plan`.

Uses Python's parser for the grammar and nothing else of Python: no text is compiled to code,
nothing is executed. Kernels and tensors come in `bind.py`.
"""

from __future__ import annotations

import ast
import re
import warnings
from typing import Final

from kernel_foundry.plan.errors import limit_error, policy_error, short, syntax_error
from kernel_foundry.plan.interpreter import constant_values
from kernel_foundry.plan.limits import (
    MAX_HELPERS,
    MAX_PLAN_CHARACTERS,
    MAX_TUNE_PARAMETERS,
    MAX_TUNE_VALUES,
)
from kernel_foundry.plan.syntax import SyntaxChecker, check_size
from kernel_foundry.plan.tree import (
    Constant,
    Expression,
    Plan,
    PlanFunction,
    TuneParameter,
    TuneValue,
)
from kernel_foundry.plan.vocabulary import FUNCTIONS, MACRO_NAME_PATTERN

_TOKEN_PATTERN: Final = r"[A-Za-z_]\w*(?:(?:::| )[A-Za-z_]\w*)*"
_TOP_LEVEL: Final = (
    "top level holds TUNE, CONST, WHERE, constants (name = literal), helper functions, prepare "
    "and launch"
)
_RESERVED_PREFIXES: Final = ("SYCL_", "CUDA_", "__")
_RESERVED_NAMES: Final = frozenset({"INFINITY", "NAN", "NULL", "TUNE", "CONST", "WHERE"})


def parse(text: str) -> Plan:
    """Parse and check a plan.

    Args:
        text: Contents of the candidate's `python` block; may be hostile.

    Raises:
        PlanError: `syntax`, `policy` or `limit`, with the line.
    """
    try:
        plan = _PlanBuilder(text, _python_tree(text)).build()
        constant_values(plan)  # refused here, where no workload is needed
    except RecursionError:
        raise limit_error("nested too deeply") from None
    return plan


def check_literal(value: object, name: str, line: int | None) -> TuneValue:
    """Return `value` if it can become a macro of the device code.

    Args:
        value: A value of TUNE, or the result of a CONST expression.
        name: The macro's name, for the message.
        line: 1-based line in the plan text.

    Raises:
        PlanError: `policy`, when it cannot.
    """
    if isinstance(value, int | float):
        return value
    if isinstance(value, str):
        # The text lands in the device code: one type or name, and no way to smuggle in code.
        if re.fullmatch(_TOKEN_PATTERN, value, re.ASCII) and len(value) <= 64:
            return value
        raise policy_error(
            f"{name}: the string {short(value)!r} must be a plain name or type, such as "
            '"float" or "sycl::half"',
            line,
        )
    raise policy_error(
        f"{name} must be a whole number, a float, a bool or a string, not {type(value).__name__}",
        line,
    )


def _python_tree(text: str) -> ast.Module:
    if len(text) > MAX_PLAN_CHARACTERS:
        raise limit_error(f"the plan is longer than {MAX_PLAN_CHARACTERS} characters")
    tree = _python_parse(text, mode="exec", first_line=1)
    assert isinstance(tree, ast.Module)
    return tree


def _python_parse(text: str, *, mode: str, first_line: int) -> ast.AST:
    """Run Python's parser; every way in which it can fail becomes a PlanError."""
    try:
        with warnings.catch_warnings():
            # Odd escapes and the like warn while parsing; a candidate's text is not our log's.
            warnings.simplefilter("ignore")
            tree = ast.parse(text, filename="plan", mode=mode)
    except SyntaxError as error:
        line = first_line - 1 + (error.lineno or 1)
        message = short(error.msg or "not Python", 200)
        raise syntax_error(f"not valid Python: {message}", line) from None
    except (ValueError, OverflowError) as error:  # NUL bytes, lone surrogates
        raise syntax_error(f"not valid Python: {short(str(error), 200)}", first_line) from None
    except (RecursionError, MemoryError):
        raise limit_error("nested too deeply", first_line) from None
    check_size(tree)
    return tree


class _PlanBuilder:
    def __init__(self, text: str, module: ast.Module) -> None:
        self._text = text
        self._module = module
        self._defined: dict[str, int] = {}
        self._tune: list[TuneParameter] = []
        self._constants: list[Constant] = []
        self._functions: list[ast.FunctionDef] = []
        self._quoted: dict[str, ast.expr] = {}

    def build(self) -> Plan:
        for statement in self._module.body:
            self._top_level(statement)
        const = self._const_expressions(self._quoted.get("CONST"))
        where = self._where_expressions(self._quoted.get("WHERE"))
        launch = next((f for f in self._functions if f.name == "launch"), None)
        if launch is None:
            raise policy_error("there is no launch: define def launch(x, out): ...")
        prepare = next((f for f in self._functions if f.name == "prepare"), None)
        helpers = [f for f in self._functions if f is not launch and f is not prepare]
        if len(helpers) > MAX_HELPERS:
            raise limit_error(f"at most {MAX_HELPERS} helper functions", helpers[-1].lineno)
        macro_names = [p.name for p in self._tune] + [c.name for c in const]
        names = [helper.name for helper in helpers]
        self._check_expressions(names, macro_names, [*const, *where])
        return Plan(
            text=self._text,
            tune=tuple(self._tune),
            const=const,
            where=where,
            constants=tuple(self._constants),
            helpers=self._check_functions(helpers, names, macro_names),
            launch=_check_function(launch, SyntaxChecker(names, macro_names)),
            prepare=(
                None
                if prepare is None
                else _check_function(prepare, SyntaxChecker(names, macro_names))
            ),
        )

    def _top_level(self, node: ast.stmt) -> None:
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                pass  # the plan's docstring
            case ast.FunctionDef(name=name):
                if name in FUNCTIONS or name in ("range", "require", "ops"):
                    raise policy_error(f"{name} is built in: choose another name", node.lineno)
                self._define(name, node.lineno)
                self._functions.append(node)
            case ast.Assign(targets=[ast.Name(id="TUNE")], value=value):
                self._define("TUNE", node.lineno)
                self._tune_parameters(value)
            case ast.Assign(targets=[ast.Name(id="CONST" | "WHERE" as name)], value=value):
                self._define(name, node.lineno)
                self._quoted[name] = value
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._constant(name, value, node.lineno)
            case ast.Import() | ast.ImportFrom():
                raise policy_error(
                    "import is not available: sqrt, exp, log2, cdiv, min, max are built in",
                    node.lineno,
                )
            case _:
                raise policy_error(_TOP_LEVEL, node.lineno)

    def _define(self, name: str, line: int) -> None:
        if name in self._defined:
            raise policy_error(
                f"{short(name)} is defined twice (first in line {self._defined[name]})", line
            )
        self._defined[name] = line

    def _constant(self, name: str, value: ast.expr, line: int) -> None:
        for node in ast.walk(value):
            if isinstance(node, ast.Call | ast.Attribute | ast.Subscript):
                raise policy_error(
                    f"the constant {short(name)} must be a literal: values from shapes go into "
                    "CONST or into launch",
                    line,
                )
            if isinstance(node, ast.Name) and not any(c.name == node.id for c in self._constants):
                raise policy_error(
                    f"the constant {short(name)} must be a literal: {short(node.id)!r} is not "
                    "known here; values from TUNE or shapes go into CONST or into launch",
                    line,
                )
        SyntaxChecker((), ()).check_expression(value)
        self._define(name, line)
        self._constants.append(Constant(name=name, node=value, line=line))

    def _tune_parameters(self, node: ast.expr) -> None:
        entries = _dictionary(node, "TUNE", '{"BLOCK": [128, 256]}')
        if len(entries) > MAX_TUNE_PARAMETERS:
            raise limit_error(f"TUNE has at most {MAX_TUNE_PARAMETERS} names", node.lineno)
        for name, value in entries:
            self._macro_name(name, value.lineno)
            if not isinstance(value, ast.List | ast.Tuple) or not value.elts:
                raise policy_error(f'TUNE["{name}"] must be a list of literals', value.lineno)
            if len(value.elts) > MAX_TUNE_VALUES:
                raise limit_error(
                    f'TUNE["{name}"] has at most {MAX_TUNE_VALUES} values', value.lineno
                )
            values = tuple(_tune_value(item, name) for item in value.elts)
            if len({(type(item), item) for item in values}) < len(values):
                raise policy_error(f'TUNE["{name}"] lists a value twice', value.lineno)
            self._tune.append(TuneParameter(name=name, values=values, line=value.lineno))

    def _macro_name(self, name: str, line: int) -> None:
        if not re.fullmatch(MACRO_NAME_PATTERN, name, re.ASCII) or len(name) > 64:
            raise policy_error(
                f"{short(name)!r} cannot be a TUNE or CONST name: two characters or more, "
                "capitals, digits and _, such as BLOCK",
                line,
            )
        if name in _RESERVED_NAMES or name.startswith(_RESERVED_PREFIXES):
            raise policy_error(f"{name} has a meaning of its own: choose another name", line)
        self._define(name, line)

    def _const_expressions(self, node: ast.expr | None) -> tuple[Expression, ...]:
        if node is None:
            return ()
        found = []
        for name, value in _dictionary(node, "CONST", '{"COLS": "x.shape[-1]"}'):
            self._macro_name(name, value.lineno)
            found.append(_expression(value, name))
        return tuple(found)

    def _where_expressions(self, node: ast.expr | None) -> tuple[Expression, ...]:
        if node is None:
            return ()
        items = node.elts if isinstance(node, ast.List | ast.Tuple) else [node]
        return tuple(_expression(item, "") for item in items)

    def _check_expressions(
        self, helpers: list[str], macro_names: list[str], expressions: list[Expression]
    ) -> None:
        checker = SyntaxChecker(helpers, macro_names)
        for expression in expressions:
            checker.check_expression(expression.node)

    def _check_functions(
        self, nodes: list[ast.FunctionDef], names: list[str], macro_names: list[str]
    ) -> tuple[PlanFunction, ...]:
        called: dict[str, set[str]] = {}
        functions = []
        for node in nodes:
            checker = SyntaxChecker(names, macro_names)
            functions.append(_check_function(node, checker))
            called[node.name] = set(checker.calls)
        for node in nodes:
            if node.name in _reachable(node.name, called):
                raise policy_error(
                    f"{short(node.name)} calls itself: recursion is not available, use for",
                    node.lineno,
                )
        return tuple(functions)


def _check_function(node: ast.FunctionDef, checker: SyntaxChecker) -> PlanFunction:
    arguments = node.args
    if node.decorator_list:
        raise policy_error("decorators are not available", node.lineno)
    extra = [*arguments.posonlyargs, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    if any(extra) or arguments.defaults:
        raise policy_error(
            f"{short(node.name)}: only plain parameters are available, without *, ** and defaults",
            node.lineno,
        )
    parameters = tuple(argument.arg for argument in arguments.args)
    for parameter in parameters:
        checker.check_target_name(parameter, node.lineno)
    checker.check_block(node.body, in_launch=node.name in ("launch", "prepare"))
    return PlanFunction(
        name=node.name, parameters=parameters, body=tuple(node.body), line=node.lineno
    )


def _reachable(start: str, called: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = list(called[start])
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(called.get(name, ()))
    return found


def _dictionary(node: ast.expr, name: str, example: str) -> list[tuple[str, ast.expr]]:
    message = f"{name} must be a dictionary with quoted names: {name} = {example}"
    if not isinstance(node, ast.Dict):
        raise policy_error(message, node.lineno)
    entries = []
    for key, value in zip(node.keys, node.values, strict=True):
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            raise policy_error(message, value.lineno)
        entries.append((key.value, value))
    return entries


def _tune_value(node: ast.expr, name: str) -> TuneValue:
    """A literal of TUNE; a sign is part of the literal."""
    is_negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    inner = node.operand if isinstance(node, ast.UnaryOp) and is_negative else node
    if isinstance(inner, ast.Constant):
        SyntaxChecker((), ()).check_expression(inner)
        value = inner.value
        if not is_negative:
            return check_literal(value, f'TUNE["{name}"]', node.lineno)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return -value
    raise policy_error(
        f'TUNE["{name}"] must list literals: whole numbers, floats, bools or strings', node.lineno
    )


def _expression(node: ast.expr, name: str) -> Expression:
    """An expression of CONST or WHERE, quoted or bare."""
    line = node.lineno
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        text = node.value.strip()
        tree = _python_parse(text, mode="eval", first_line=line)
        assert isinstance(tree, ast.Expression)
        ast.increment_lineno(tree, line - 1)
        return Expression(name=name, text=text, node=tree.body, line=line)
    return Expression(name=name, text=short(ast.unparse(node), 200), node=node, line=line)
