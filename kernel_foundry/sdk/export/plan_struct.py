"""A checked plan as the text of a C++ struct, for an exported folder.

The struct asks a recorder (`cpp/recorder.hpp`) for memory and launches. Expressions are written in
`plan_expression.py`.
"""

import ast
from collections.abc import Iterable, Sequence

from kernel_foundry.domain.evaluation import Setting
from kernel_foundry.plan.configuration import chosen_values, in_order
from kernel_foundry.plan.names import NameTable
from kernel_foundry.plan.tree import Plan, PlanFunction
from kernel_foundry.sdk.export.c_text import c_string, c_value
from kernel_foundry.sdk.export.plan_expression import ExpressionWriter, entry, variable
from kernel_foundry.sdk.export.plan_faults import unknown


def plan_struct(plan: Plan, name: str, names: NameTable, configuration: Iterable[Setting]) -> str:
    """Return the text of a struct, derived from `Plan` in `cpp/recorder.hpp`.

    Args:
        plan: Parsed and checked.
        name: Of the struct.
        names: The task's; sizes do not matter.
        configuration: Values of TUNE.

    Raises:
        InvalidArgumentError: the plan makes library calls, which need torch.
    """
    written = _StructWriter(plan, names)
    shared = [c.name for c in plan.constants] + list(plan.macro_names)
    lines = ["using Plan::Plan;"]
    if shared:
        lines.append(f"Value {', '.join(map(variable, shared))};")
    for function in plan.helpers:
        lines += ["", *written.function(function)]
    chosen = chosen_values(plan, configuration)
    none: frozenset[str] = frozenset()
    begin = [f"{variable(c.name)} = {written.expression(c.node, none)};" for c in plan.constants]
    begin += [f"{variable(key)} = {c_value(value)};" for key, value in chosen.items()]
    for each in in_order(plan):
        value = written.expression(each.node, None)
        assigned = f"{variable(each.name)} = {value};"
        begin.append(assigned if each.name else _requirement(value, each.text))
    pairs = (f"{{{c_string(key)}, {variable(key)}}}" for key in plan.macro_names)
    begin.append(f"return {{{', '.join(pairs)}}};")
    lines += ["", "Macros macros() override {", *_indented(begin), "}"]
    handed = none
    if plan.prepare:
        handed = plan.prepare.assigned
        given = ", ".join(map(entry, plan.prepare.parameters))
        lines += ["", *written.function(plan.prepare)]
        lines.append(f"void prepare() override {{ prepare_({given}); }}")
    values = [f"made({c_string(p)})" if p in handed else entry(p) for p in plan.launch.parameters]
    lines += ["", *written.function(plan.launch)]
    lines.append(f"void launch() override {{ launch_({', '.join(values)}); }}")
    return "\n".join([f"struct {name} final : Plan {{", *_indented(lines), "};"])


class _StructWriter(ExpressionWriter):
    _function: PlanFunction | None = None
    """That is written now."""

    def function(self, function: PlanFunction) -> list[str]:
        """Return the lines of `launch`, `prepare` or a helper."""
        self._function = function
        is_prepare = function is self.plan.prepare
        parameters = ", ".join(f"Value {variable(p)}" for p in function.parameters)
        assigned = sorted(function.assigned)
        own = [variable(name) for name in assigned if name not in function.parameters]
        lines = [f"Value {', '.join(own)};"] if own else []
        if is_prepare:
            kept = (f"keep({c_string(n)}, {variable(n)}); " for n in assigned)
            lines.append(f"const auto kept = [&] {{ {''.join(kept)}return Value(); }};")
        lines += self._statements(function.body, function.assigned | set(function.parameters))
        lines.append("return kept();" if is_prepare else "return Value();")
        return [f"Value {variable(function.name)}({parameters}) {{", *_indented(lines), "}"]

    def _statements(self, nodes: Iterable[ast.stmt], local: frozenset[str]) -> list[str]:
        return [line for node in nodes for line in self._statement(node, local)]

    def _statement(self, node: ast.stmt, local: frozenset[str]) -> list[str]:
        match node:
            case ast.Expr(value=ast.Call() as call):
                return [self._call_statement(call, local)]
            case ast.Assign(targets=targets, value=value):
                return _assignment(targets, self.expression(value, local))
            case ast.AugAssign(target=ast.Name(id=name) as target, op=operation, value=value):
                whole = ast.BinOp(ast.Name(name, ast.Load()), operation, value)
                return _assignment([target], self.expression(whole, local))
            case ast.If(test=test, body=body, orelse=orelse):
                lines = [f"if (truth({self.expression(test, local)})) {{"]
                lines += _indented(self._statements(body, local))
                if orelse:
                    lines += ["} else {", *_indented(self._statements(orelse, local))]
                return [*lines, "}"]
            case ast.For(target=target, iter=items, body=body):
                turn = [*_assigned_to(target, "item"), *self._statements(body, local)]
                lines = [f"const Value items = {self.expression(items, local)};"]
                lines += ["for (const Value& item : items.as_tuple()) {", *_indented(turn), "}"]
                return ["{", *_indented(lines), "}"]
            case ast.Return(value=value):
                return [self._return(value, local)]
            case ast.Assert(test=test):
                return [_requirement(self.expression(test, local), ast.unparse(test))]
            case ast.Expr() | ast.Pass():
                return []
            case _:
                raise unknown(node)

    def _call_statement(self, call: ast.Call, local: frozenset[str]) -> str:
        match call.func:
            case ast.Subscript(value=ast.Name(id=kernel), slice=setup):
                given, named = self.arguments(call, local)
                pairs = ", ".join(f"{{{c_string(key)}, {value}}}" for key, value in named)
                parts = (c_string(kernel), self.expression(setup, local))
                return f"run.launch({{{', '.join(parts)}, {{{', '.join(given)}}}, {{{pairs}}}}});"
            case ast.Name(id="require"):
                test = call.args[0]
                return _requirement(self.expression(test, local), ast.unparse(test))
            case _:
                return f"{self.expression(call, local)};"

    def _return(self, value: ast.expr | None, local: frozenset[str]) -> str:
        if self._function is self.plan.prepare:
            return "return kept();"
        if value is None or self._function is self.plan.launch:
            return "return Value();"
        return f"return {self.expression(value, local)};"


def _assignment(targets: Sequence[ast.expr], value: str) -> list[str]:
    if len(targets) == 1 and isinstance(targets[0], ast.Name):
        return _assigned_to(targets[0], value)
    lines = [line for target in targets for line in _assigned_to(target, "whole")]
    return ["{", *_indented([f"const Value whole = {value};", *lines]), "}"]


def _assigned_to(target: ast.expr, value: str) -> list[str]:
    match target:
        case ast.Name(id=name):
            return [f"{variable(name)} = {value};"]
        case ast.Tuple(elts=items):
            return [
                line
                for i, item in enumerate(items)
                for line in _assigned_to(item, f"unpacked({value}, {i}, {len(items)})")
            ]
        case _:
            raise unknown(target)


def _requirement(test: str, words: str) -> str:
    return f"run.require({test}, {c_string(words)});"


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" if line else "" for line in lines]
