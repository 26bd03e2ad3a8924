"""Checks a parsed launch plan against the policy's rules.

The plan language is an allow-list that refuses other imports, attributes and calls by itself. The
rules here are about what it leaves: names, numbers and text.
"""

import ast
import re
from collections.abc import Iterator
from typing import Final

from evaluator_svc.policy.finding import rule_finding, short
from evaluator_svc.policy.limits import ADDRESSES, LARGE_EXTENT, MAX_PLAN_NUMBERS
from evaluator_svc.policy.reading import control_character, hidden_character, speaks_to_reader
from kernel_foundry.domain.finding import Finding
from kernel_foundry.plan.tree import Plan, PlanFunction

_DUNDER: Final = re.compile(r"(?<![A-Za-z0-9])__[A-Za-z]\w{0,60}__(?![A-Za-z0-9])")


def check_plan(plan: Plan) -> tuple[Finding, ...]:
    """Return the rules' findings on a plan; it may be used if none of them is an error."""
    nodes = tuple(_nodes(plan))
    found = (
        *_hidden(plan),
        *_dunders(plan, nodes),
        *_addresses(plan, nodes),
        *_tables(nodes),
        *_exact_shapes(plan, nodes),
        *_speaks_to_reader(plan),
    )
    once: dict[str, Finding] = {}
    for finding in found:
        once.setdefault(finding.rule, finding)
    return tuple(once.values())


def _nodes(plan: Plan) -> Iterator[tuple[ast.AST, int]]:
    """Iterate over every node beside TUNE, with its line; docstrings are left out."""
    for constant in plan.constants:
        yield from ((node, constant.line) for node in ast.walk(constant.node))
    for expression in (*plan.const, *plan.where):
        yield from ((node, expression.line) for node in ast.walk(expression.node))
    for function in _functions(plan):
        for statement in function.body:
            yield from _statement_nodes(statement, function.line)


def _functions(plan: Plan) -> tuple[PlanFunction, ...]:
    prepare = () if plan.prepare is None else (plan.prepare,)
    return (*plan.helpers, *prepare, plan.launch)


def _statement_nodes(statement: ast.stmt, line: int) -> Iterator[tuple[ast.AST, int]]:
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        yield node, getattr(node, "lineno", line)
        waiting.extend(ast.iter_child_nodes(node))


def _hidden(plan: Plan) -> Iterator[Finding]:
    found = (control_character(plan.text), hidden_character(plan.text))
    offset = min((offset for offset in found if offset >= 0), default=None)
    if offset is not None:
        line = plan.text.count("\n", 0, offset) + 1
        message = "the plan contains a character that people cannot see"
        yield rule_finding("plan.hidden_text", message, "remove it", line)


def _dunders(plan: Plan, nodes: tuple[tuple[ast.AST, int], ...]) -> Iterator[Finding]:
    for name, line in _words(plan, nodes):
        match = _DUNDER.search(name)
        if match is not None:
            message = f"{short(match[0])} is a name of Python's own"
            yield rule_finding("plan.dunder", message, "choose another name", line)


def _words(plan: Plan, nodes: tuple[tuple[ast.AST, int], ...]) -> Iterator[tuple[str, int]]:
    for parameter in plan.tune:
        yield from ((v, parameter.line) for v in parameter.values if isinstance(v, str))
    for function in _functions(plan):
        yield from ((name, function.line) for name in (function.name, *function.parameters))
    for constant in plan.constants:
        yield constant.name, constant.line
    for node, line in nodes:
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
                yield name, line
            case ast.Constant(value=str(text)):
                yield text, line


def _addresses(plan: Plan, nodes: tuple[tuple[ast.AST, int], ...]) -> Iterator[Finding]:
    numbers = [(v, p.line) for p in plan.tune for v in p.values if isinstance(v, int)]
    numbers += [(_whole(node), line) for node, line in nodes]
    for number, line in numbers:
        if number in ADDRESSES:
            message = f"{number} is where a process has its memory"
            yield rule_finding("plan.address", message, "kernels take tensors and offsets", line)


def _tables(nodes: tuple[tuple[ast.AST, int], ...]) -> Iterator[Finding]:
    count = sum(
        isinstance(node, ast.Constant) and isinstance(node.value, int | float) for node, _ in nodes
    )
    if count >= MAX_PLAN_NUMBERS:
        message = f"{count} numbers beside TUNE"
        yield rule_finding("plan.literal_table", message, "compute what can be computed")


def _exact_shapes(plan: Plan, nodes: tuple[tuple[ast.AST, int], ...]) -> Iterator[Finding]:
    macros = frozenset(plan.macro_names)
    for node, line in nodes:
        if not isinstance(node, ast.Compare) or _is_of(node, macros):
            continue
        sides = (node.left, *node.comparators)
        if any(isinstance(side, ast.BinOp) and isinstance(side.op, ast.Mod) for side in sides):
            continue
        if not any(isinstance(op, ast.Eq | ast.NotEq | ast.In | ast.NotIn) for op in node.ops):
            continue
        for side in sides:
            for value in side.elts if isinstance(side, ast.Tuple | ast.List) else (side,):
                if _whole(value) >= LARGE_EXTENT:
                    message = f"a path for one size alone: {_whole(value)}"
                    hint = "a condition such as a multiple or a limit serves more shapes"
                    yield rule_finding("plan.exact_shape", message, hint, line)


def _is_of(node: ast.AST, macros: frozenset[str]) -> bool:
    """Return whether nothing but TUNE and CONST names are in an expression."""
    return all(n.id in macros for n in ast.walk(node) if isinstance(n, ast.Name)) and not any(
        isinstance(n, ast.Attribute) for n in ast.walk(node)
    )


def _speaks_to_reader(plan: Plan) -> Iterator[Finding]:
    match = speaks_to_reader(plan.text)
    if match is not None:
        message = "a comment or string addresses a reader; no program here obeys comments"
        line = plan.text.count("\n", 0, match.start()) + 1
        yield rule_finding("plan.addressed_reader", message, "", line)


def _whole(node: ast.AST) -> int:
    """Return the whole number that a node is; 0 for all other nodes."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return int(node.value)
    return 0
