"""A checked plan as the text of a C++ struct, for an exported folder.

The struct asks a recorder (`cpp/recorder.hpp`) for memory and launches. The walk over the plan is
in `plan_writer.py`.
"""

import ast
from collections.abc import Iterable, Sequence
from typing import Final

from kernel_foundry.domain.evaluation import Setting
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.plan.names import NameTable
from kernel_foundry.plan.tree import Plan, PlanFunction
from kernel_foundry.sdk.export.c_text import c_string, c_value
from kernel_foundry.sdk.export.plan_writer import Names, PlanWriter, unknown

_SYMBOLS: Final[dict[type[ast.AST], str]] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.USub: "-", ast.UAdd: "+", ast.Eq: "==",
    ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_FUNCTIONS: Final[dict[type[ast.AST], str]] = {
    ast.Div: "divide", ast.FloorDiv: "floor_divide", ast.Mod: "modulo", ast.Pow: "power",
}  # fmt: skip
_OF_LISTS: Final = ("min", "max", "range")
"""Functions of any number of values."""


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
    return _StructWriter(plan, names, configuration).text(name)


class _StructWriter(PlanWriter):
    def text(self, name: str) -> str:
        plan = self.plan
        self._recording = self._recording_helpers()
        shared = [c.name for c in plan.constants] + list(plan.macro_names)
        lines = ["using Plan::Plan;"]
        if shared:
            lines.append(f"Value {', '.join(map(self.variable, shared))};")
        for function in plan.helpers:
            lines += ["", *self._function(function)]
        begin = [f"{self.variable(key)} = {value};" for key, value in self.constants()]
        begin += [f"{self.variable(k)} = {c_value(value)};" for k, value in self.chosen.items()]
        begin += [
            f"{self.variable(key)} = {value};" if key else value
            for key, value in self.macros_and_conditions()
        ]
        pairs = (f"{{{c_string(key)}, {self.variable(key)}}}" for key in plan.macro_names)
        begin.append(f"return {{{', '.join(pairs)}}};")
        lines += ["", "Macros macros() override {", *_indented(begin), "}"]
        handed = self.assigned(plan.prepare) if plan.prepare else frozenset()
        if plan.prepare:
            given = ", ".join(map(self.entry, plan.prepare.parameters))
            lines += ["", *self._function(plan.prepare)]
            lines.append(f"void prepare() override {{ prepare_({given}); }}")
        values = [
            f"made({c_string(p)})" if p in handed else self.entry(p) for p in plan.launch.parameters
        ]
        lines += ["", *self._function(plan.launch)]
        lines.append(f"void launch() override {{ launch_({', '.join(values)}); }}")
        return "\n".join([f"struct {name} final : Plan {{", *_indented(lines), "};"])

    def _function(self, function: PlanFunction) -> list[str]:
        parameters = ", ".join(f"Value {self.variable(p)}" for p in function.parameters)
        assigned = sorted(self.assigned(function))
        own = [self.variable(name) for name in assigned if name not in function.parameters]
        lines = [f"Value {', '.join(own)};"] if own else []
        if function is self.plan.prepare:
            kept = (f"keep({c_string(n)}, {self.variable(n)}); " for n in assigned)
            lines.append(f"const auto kept = [&] {{ {''.join(kept)}return Value(); }};")
        lines += self.body(function)
        lines.append("return kept();" if function is self.plan.prepare else "return Value();")
        return [f"Value {self.variable(function.name)}({parameters}) {{", *_indented(lines), "}"]

    def expression(self, node: ast.expr, local: Names) -> str:
        """Return the text of an expression.

        C++ leaves the order of operands open: those that record steps have to be alone.
        """
        if isinstance(node, ast.BinOp | ast.Compare | ast.Subscript | ast.Call) and (
            sum(self._records(child) for child in ast.iter_child_nodes(node)) > 1
        ):
            raise InvalidArgumentError(
                f"the plan computes {ast.unparse(node)[:100]} of two parts that launch kernels or"
                " clear memory, and C++ does not say which comes first: export it --to torch",
                field="to",
            )
        return super().expression(node, local)

    def _records(self, part: ast.AST) -> bool:
        called = {
            node.func.id
            for node in ast.walk(part)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        return bool(called & self._recording)

    def _recording_helpers(self) -> frozenset[str]:
        self._recording = frozenset({"zeros"})
        for _ in self.plan.helpers:
            self._recording |= {
                helper.name
                for helper in self.plan.helpers
                if any(_launches(node) or self._records(node) for node in helper.body)
            }
        return self._recording

    def entry(self, name: str) -> str:
        return f"name({c_string(name)})"

    def variable(self, name: str) -> str:
        return f"{name}_"  # nothing of the runtime's ends so

    def assignment(self, targets: Sequence[ast.expr], value: str) -> list[str]:
        if len(targets) == 1 and isinstance(targets[0], ast.Name):
            return [f"{self.variable(targets[0].id)} = {value};"]
        lines = [line for target in targets for line in self._assigned_to(target, "whole")]
        return ["{", *_indented([f"const Value whole = {value};", *lines]), "}"]

    def _assigned_to(self, target: ast.expr, value: str) -> list[str]:
        match target:
            case ast.Name(id=name):
                return [f"{self.variable(name)} = {value};"]
            case ast.Tuple(elts=items):
                count = len(items)
                return [
                    line
                    for i, item in enumerate(items)
                    for line in self._assigned_to(item, f"unpacked({value}, {i}, {count})")
                ]
            case _:
                raise unknown(target)

    def choice(self, test: str, body: list[str], orelse: list[str]) -> list[str]:
        lines = [f"if (truth({test})) {{", *_indented(body)]
        return [*lines, *(["} else {", *_indented(orelse)] if orelse else []), "}"]

    def loop(self, target: ast.expr, items: str, body: list[str]) -> list[str]:
        turn = [*self._assigned_to(target, "item"), *body]
        lines = [f"const Value items = {items};", "for (const Value& item : items.as_tuple()) {"]
        return ["{", *_indented([*lines, *_indented(turn), "}"]), "}"]

    def end(self, value: str) -> str:
        if self.in_prepare:
            return "return kept();"
        return f"return {value or 'Value()'};"

    def requirement(self, test: str, words: str) -> str:
        return f"run.require({test}, {c_string(words)});"

    def statement(self, call: str) -> str:
        return f"{call};"

    def launch(
        self, kernel: str, setup: str, given: list[str], named: list[tuple[str, str]]
    ) -> str:
        values = ", ".join(given)
        pairs = ", ".join(f"{{{c_string(key)}, {value}}}" for key, value in named)
        return f"run.launch({{{c_string(kernel)}, {setup}, {{{values}}}, {{{pairs}}}}});"

    def constant(self, value: float | str | None) -> str:
        return c_value(value)

    def tuple_of(self, items: list[str]) -> str:
        return f"tuple({{{', '.join(items)}}})"

    def operation(self, operation: ast.operator, left: str, right: str) -> str:
        function = _FUNCTIONS.get(type(operation))
        if function:
            return f"{function}({left}, {right})"
        return f"({left} {_SYMBOLS[type(operation)]} {right})"

    def sign(self, sign: ast.unaryop, operand: str) -> str:
        if isinstance(sign, ast.Not):
            return f"Value(!truth({operand}))"
        return f"({_SYMBOLS[type(sign)]}{operand})"

    def comparison(self, left: str, others: list[tuple[ast.cmpop, str]]) -> str:
        if len(others) == 1:
            return f"Value({_compared(others[0][0], left, others[0][1])})"
        lines = [f"const Value part0 = {left};"]
        for i, (operation, other) in enumerate(others):
            held = _compared(operation, f"part{i}", f"part{i + 1}")
            lines += [f"const Value part{i + 1} = {other};", f"if (!({held})) return Value(false);"]
        return f"[&] {{ {' '.join(lines)} return Value(true); }}()"

    def decision(self, operator: ast.boolop, values: list[str]) -> str:
        *firsts, text = values
        word = "both" if isinstance(operator, ast.And) else "either"
        for first in reversed(firsts):
            text = f"{word}({first}, [&] {{ return {text}; }})"
        return text

    def alternative(self, test: str, body: str, orelse: str) -> str:
        return f"(truth({test}) ? {body} : {orelse})"

    def device_fact(self, name: str) -> str:
        return f"device.{name}"

    def attribute(self, owner: str, name: str) -> str:
        return f"{owner}.{name}()"

    def parameter(self, path: str) -> str:
        return f"parameter({path})"

    def part(self, owner: str, bounds: list[str]) -> str:
        return f"{owner}.part({', '.join(bound or 'Value()' for bound in bounds)})"

    def item(self, owner: str, index: str) -> str:
        return f"{owner}[{index}]"

    def library(self, name: str, given: list[str], named: list[tuple[str, str]]) -> str:
        raise InvalidArgumentError(
            f"the plan calls ops.{name}, which is torch's: export it --to torch", field="to"
        )

    def method(self, owner: str, name: str, given: list[str]) -> str:
        return f"{owner}.{name}({', '.join(given)})"

    def function(self, name: str, given: list[str]) -> str:
        values = ", ".join(given)
        if name in _OF_LISTS:
            return f"{name}({{{values}}})"
        return f"{'to_int' if name == 'int' else name}({values})"

    def memory(self, name: str, given: list[str], named: list[tuple[str, str]]) -> str:
        if name == "local":
            raise InvalidArgumentError("CUDA has no local(...)", field="plan")
        return f"run.{name}({', '.join(_in_order(('shape', 'dtype'), given, named))})"

    def helper(self, name: str, given: list[str], named: list[tuple[str, str]]) -> str:
        helper = self.plan.helper(name)
        assert helper is not None, "the walk knows every helper"
        values = _in_order(helper.parameters, given, named)
        return f"{self.variable(name)}({', '.join(values)})"


def _launches(statement: ast.stmt) -> bool:
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)
        for node in ast.walk(statement)
    )


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


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" if line else "" for line in lines]
