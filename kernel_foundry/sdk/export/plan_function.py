"""A checked plan as the text of a Python function, for an exported file.

The function asks a recorder (`runtime/plan.py`) for memory and launches. The walk over the plan is
in `plan_writer.py`.
"""

import ast
from collections.abc import Iterable, Sequence
from typing import Final

from kernel_foundry.domain.evaluation import Setting
from kernel_foundry.plan.names import NameTable
from kernel_foundry.plan.tree import Plan, PlanFunction
from kernel_foundry.plan.vocabulary import ARITHMETIC_FUNCTIONS
from kernel_foundry.sdk.export.plan_writer import PlanWriter, unknown

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
    return _PythonWriter(plan, names, configuration).text(name)


class _PythonWriter(PlanWriter):
    def text(self, name: str) -> str:
        """Return the whole function."""
        plan = self.plan
        body = [f"{key} = {value}" for key, value in self.constants()]
        body += [f"{key} = {value!r}" for key, value in self.chosen.items()]
        for function in plan.helpers:
            body += self._function(function)
        body += [f"{key} = {t}" if key else t for key, t in self.macros_and_conditions()]
        handed = self.assigned(plan.prepare) if plan.prepare else frozenset()
        if plan.prepare:
            body += self._function(plan.prepare)
        body += self._function(plan.launch)
        macros = ", ".join(f"{key!r}: {key}" for key in plan.macro_names)
        begin = "None"
        if plan.prepare:
            begin = f"lambda: prepare({', '.join(map(self.entry, plan.prepare.parameters))})"
        values = [
            f"made[{self.variable(p)!r}]" if p in handed else self.entry(p)
            for p in plan.launch.parameters
        ]
        body.append(f"return {{{macros}}}, {begin}, lambda made: launch({', '.join(values)})")
        head = [f"def {name}(do, device, names):"]
        return "\n".join([*head, *_indented(body)])

    def _function(self, function: PlanFunction) -> list[str]:
        names = ", ".join(map(self.variable, function.parameters))
        written = self.body(function)
        if function is self.plan.prepare:
            written.append("return locals()")
        return [f"def {self.variable(function.name)}({names}):", *_block(written)]

    def entry(self, name: str) -> str:
        return f"names[{name!r}]"

    def variable(self, name: str) -> str:
        return f"{name}_" if name in _OWN else name

    def assignment(self, targets: Sequence[ast.expr], value: str) -> list[str]:
        return ["".join(f"{self._target(target)} = " for target in targets) + value]

    def _target(self, node: ast.expr) -> str:
        match node:
            case ast.Name(id=name):
                return self.variable(name)
            case ast.Tuple(elts=items):
                return f"({', '.join(self._target(item) for item in items)},)"
            case _:
                raise unknown(node)

    def choice(self, test: str, body: list[str], orelse: list[str]) -> list[str]:
        lines = [f"if {test}:", *_block(body)]
        return [*lines, "else:", *_block(orelse)] if orelse else lines

    def loop(self, target: ast.expr, items: str, body: list[str]) -> list[str]:
        return [f"for {self._target(target)} in {items}:", *_block(body)]

    def end(self, value: str) -> str:
        if self.in_prepare:
            return "return locals()"
        return f"return {value or None}"

    def requirement(self, test: str, words: str) -> str:
        return f"do.require({test}, {words!r})"

    def statement(self, call: str) -> str:
        return call

    def launch(
        self, kernel: str, setup: str, given: list[str], named: list[tuple[str, str]]
    ) -> str:
        return f"do.launch({', '.join([repr(kernel), setup, *_arguments(given, named)])})"

    def constant(self, value: float | str | None) -> str:
        if isinstance(value, float) and repr(value) in ("inf", "nan"):
            return f"float({repr(value)!r})"
        return repr(value)

    def tuple_of(self, items: list[str]) -> str:
        return f"({''.join(f'{item}, ' for item in items).strip()})"

    def operation(self, operation: ast.operator, left: str, right: str) -> str:
        if isinstance(operation, ast.Pow):
            return f"power({left}, {right})"
        return f"({left} {_SYMBOLS[type(operation)]} {right})"

    def sign(self, sign: ast.unaryop, operand: str) -> str:
        return f"({_SYMBOLS[type(sign)]}{operand})"

    def comparison(self, left: str, others: list[tuple[ast.cmpop, str]]) -> str:
        rest = (f" {_SYMBOLS[type(operation)]} {other}" for operation, other in others)
        return f"({left}{''.join(rest)})"

    def decision(self, operator: ast.boolop, values: list[str]) -> str:
        return f"({f' {_SYMBOLS[type(operator)]} '.join(values)})"

    def alternative(self, test: str, body: str, orelse: str) -> str:
        return f"({body} if {test} else {orelse})"

    def device_fact(self, name: str) -> str:
        return f"device.{name}"

    def attribute(self, owner: str, name: str) -> str:
        return f"{owner}.{name}"

    def parameter(self, path: str) -> str:
        return f"do.parameter({path})"

    def part(self, owner: str, bounds: list[str]) -> str:
        return f"{owner}[{':'.join(bounds)}]"

    def item(self, owner: str, index: str) -> str:
        return f"{owner}[{index}]"

    def library(self, name: str, given: list[str], named: list[tuple[str, str]]) -> str:
        return f"do.library({', '.join([repr(name), *_arguments(given, named)])})"

    def method(self, owner: str, name: str, given: list[str]) -> str:
        return f"{owner}.{name}({', '.join(given)})"

    def function(self, name: str, given: list[str]) -> str:
        module = "math." if name in _MATHEMATICS else ""
        return f"{module}{name}({', '.join(given)})"

    def memory(self, name: str, given: list[str], named: list[tuple[str, str]]) -> str:
        return f"do.{name}({', '.join(_arguments(given, named))})"

    def helper(self, name: str, given: list[str], named: list[tuple[str, str]]) -> str:
        return f"{self.variable(name)}({', '.join(_arguments(given, named))})"


_SYMBOLS: Final[dict[type[ast.AST], str]] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.USub: "-", ast.UAdd: "+", ast.Not: "not ", ast.And: "and", ast.Or: "or",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip


def _arguments(given: list[str], named: list[tuple[str, str]]) -> list[str]:
    # By name in a dict: a C parameter may be called as a word of Python's.
    pairs = ", ".join(f"{key!r}: {value}" for key, value in named)
    return [*given, f"**{{{pairs}}}"] if named else given


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _block(lines: Sequence[str]) -> list[str]:
    return _indented(lines or ["pass"])
