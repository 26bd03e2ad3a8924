"""The search space of a plan: TUNE under WHERE, and CONST per workload.

A configuration is a dict from TUNE name to value. Configurations become macros in `macros.py`.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from kernel_foundry.domain.evaluation import Setting
from kernel_foundry.plan.errors import NotMeant, bind_error, limit_error, short
from kernel_foundry.plan.interpreter import Interpreter, constant_values
from kernel_foundry.plan.names import NameTable
from kernel_foundry.plan.parse import check_literal
from kernel_foundry.plan.tree import Expression, Plan, TuneParameter, TuneValue
from kernel_foundry.plan.values import DeviceLimits, Value

Configuration: TypeAlias = Mapping[str, TuneValue]


def default_configuration(plan: Plan) -> dict[str, TuneValue]:
    """Return the first value of every TUNE name."""
    return {parameter.name: parameter.values[0] for parameter in plan.tune}


def space_size(plan: Plan) -> int:
    """Return the number of configurations, before WHERE."""
    return math.prod(len(parameter.values) for parameter in plan.tune)


def configurations(
    plan: Plan, names: NameTable | None = None, device: DeviceLimits | None = None
) -> Iterator[dict[str, TuneValue]]:
    """Yield the configurations that WHERE allows, lazily, the default first if it is allowed.

    Args:
        plan: The plan.
        names: A workload's names. Without them a condition on shapes or CONST is left open, and
            `bind` decides it.
        device: Likewise for conditions on the device.

    Raises:
        PlanError: When a condition cannot be evaluated.
    """
    keys = [parameter.name for parameter in plan.tune]
    for values in itertools.product(*(parameter.values for parameter in plan.tune)):
        configuration = dict(zip(keys, values, strict=True))
        if is_meant(plan, configuration, names, device):
            yield configuration


def is_meant(
    plan: Plan,
    configuration: Configuration,
    names: NameTable | None = None,
    device: DeviceLimits | None = None,
) -> bool:
    """Return whether WHERE allows `configuration`; see `configurations` for what is left open.

    Raises:
        PlanError: When a condition cannot be evaluated.
    """
    try:
        _evaluate(plan, names, configuration, device, decide_all=False)
    except NotMeant:
        return False
    return True


def chosen_values(plan: Plan, settings: Iterable[Setting]) -> dict[str, TuneValue]:
    """Return a value for every TUNE name: what `settings` say, else the default.

    Raises:
        PlanError: `bind`, for an unknown name or a value that TUNE does not list.
    """
    configuration = default_configuration(plan)
    by_name = {parameter.name: parameter for parameter in plan.tune}
    for setting in settings:
        if setting.name not in by_name:
            known = ", ".join(by_name) or "none"
            raise bind_error(f"TUNE has no {short(setting.name)!r}; it has {known}")
        configuration[setting.name] = _listed_value(by_name[setting.name], setting.value)
    return configuration


def settings_of(configuration: Configuration) -> tuple[Setting, ...]:
    """Return the values of a configuration as texts; `chosen_values` reads them."""
    return tuple(Setting(name=name, value=str(value)) for name, value in configuration.items())


def constants(
    plan: Plan,
    names: NameTable,
    configuration: Configuration,
    device: DeviceLimits | None = None,
) -> dict[str, TuneValue]:
    """Return the values of CONST for one workload and configuration.

    Raises:
        NotMeant: When WHERE does not allow the configuration.
        PlanError: When an expression cannot be evaluated.
    """
    return _evaluate(plan, names, configuration, device, decide_all=True)


def _evaluate(
    plan: Plan,
    names: NameTable | None,
    configuration: Configuration,
    device: DeviceLimits | None,
    *,
    decide_all: bool,
) -> dict[str, TuneValue]:
    """Evaluate WHERE and CONST.

    `decide_all`: an expression that needs what is not given is an error; else it is left out.
    """
    try:
        check_configuration(plan, configuration)
        shared: dict[str, Value] = {**constant_values(plan), **configuration}
        interpreter = Interpreter(plan, shared=shared, names=names, device=device, recorder=None)
        undecided = {"params"} if names is None else set()
        if device is None:
            undecided.add("device")
        found: dict[str, TuneValue] = {}
        scope = interpreter.table_scope()
        for expression in in_order(plan):
            used = _used_names(expression)
            is_open = bool(used & undecided) or (names is None and not used <= set(shared))
            if is_open and not decide_all:
                undecided.add(expression.name)
            elif expression.name:
                value = interpreter.evaluate(expression.node, scope)
                literal = check_literal(value, f'CONST["{expression.name}"]', expression.line)
                found[expression.name] = shared[expression.name] = literal
            elif not interpreter.condition(expression.node, scope):
                text = short(expression.text, 200)
                raise NotMeant(f"not meant: WHERE {text} is false", line=expression.line)
    except RecursionError:
        raise limit_error("helpers and expressions are nested too deeply") from None
    return found


def in_order(plan: Plan) -> tuple[Expression, ...]:
    """Return WHERE and CONST in order of evaluation.

    Conditions on TUNE alone come first: they keep CONST from being evaluated where not meant.
    """
    const_names = {expression.name for expression in plan.const}
    late = tuple(condition for condition in plan.where if _used_names(condition) & const_names)
    early = tuple(condition for condition in plan.where if condition not in late)
    return (*early, *plan.const, *late)


def check_configuration(plan: Plan, configuration: Configuration) -> None:
    """Refuse a configuration that is not one of this plan's.

    Raises:
        PlanError: `bind`.
    """
    expected = {parameter.name for parameter in plan.tune}
    if set(configuration) != expected:
        wrong = ", ".join(short(str(name)) for name in sorted(expected ^ set(configuration)))
        raise bind_error(f"the configuration does not match TUNE: {wrong}")
    for parameter in plan.tune:
        value = configuration[parameter.name]
        if not any(_same(value, listed) for listed in parameter.values):
            raise bind_error(f'{value!r} is not listed in TUNE["{parameter.name}"]', parameter.line)


def _listed_value(parameter: TuneParameter, text: str) -> TuneValue:
    for value in parameter.values:
        if text in (str(value), repr(value)):
            return value
        if isinstance(value, bool) and text.lower() == str(value).lower():
            return value
        if isinstance(value, float) and not isinstance(value, bool) and _as_float(text) == value:
            return value
    listed = ", ".join(map(str, parameter.values))
    raise bind_error(f"TUNE[{parameter.name!r}] has no value {short(text)!r}; it lists {listed}")


def _as_float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _same(left: TuneValue, right: TuneValue) -> bool:
    return type(left) is type(right) and left == right


def _used_names(expression: Expression) -> set[str]:
    called = {id(n.func) for n in ast.walk(expression.node) if isinstance(n, ast.Call)}
    return {
        node.id
        for node in ast.walk(expression.node)
        if isinstance(node, ast.Name) and id(node) not in called
    }
