"""Operators on each element: what PyTorch calls them, and C++ of them."""

from typing import Any, Final

from generator_svc.recipes.plain.languages import KINDS
from generator_svc.recipes.plain.program import Operand, Program, widest
from generator_svc.recipes.plain.tensors import NUMBER, TRUTH, WHOLE, Tensor
from generator_svc.recipes.unsupported import RecipeUnsupported

_SAME: Final = {
    "relu": "({0} < 0 ? 0 : {0})",
    "neg": "(-{0})",
    "abs": "({0} < 0 ? -{0} : {0})",
    "square": "({0} * {0})",
    "sign": "(({0} > 0) - ({0} < 0))",
    "maximum": "(({0} > {1} || {0} != {0}) ? {0} : {1})",
    "minimum": "(({0} < {1} || {0} != {0}) ? {0} : {1})",
    "mul": "({0} * {1})",
}
"""The result is of the operands' kind."""

_NUMBERS: Final = {
    "exp": "{m}exp({0})",
    "exp2": "{m}exp2({0})",
    "expm1": "{m}expm1({0})",
    "log": "{m}log({0})",
    "log2": "{m}log2({0})",
    "log1p": "{m}log1p({0})",
    "sqrt": "{m}sqrt({0})",
    "rsqrt": "(1.0f / {m}sqrt({0}))",
    "reciprocal": "(1.0f / {0})",
    "tanh": "{m}tanh({0})",
    "erf": "{m}erf({0})",
    "sin": "{m}sin({0})",
    "cos": "{m}cos({0})",
    "tan": "{m}tan({0})",
    "atan": "{m}atan({0})",
    "sinh": "{m}sinh({0})",
    "cosh": "{m}cosh({0})",
    "floor": "{m}floor({0})",
    "ceil": "{m}ceil({0})",
    "round": "{m}rint({0})",
    "trunc": "{m}trunc({0})",
    "sigmoid": "(1.0f / (1.0f + {m}exp(-{0})))",
    "silu": "({0} / (1.0f + {m}exp(-{0})))",
    "relu6": "({0} < 0.0f ? 0.0f : {0} > 6.0f ? 6.0f : {0})",
    "hardsigmoid": "({0} < -3.0f ? 0.0f : {0} > 3.0f ? 1.0f : {0} / 6.0f + 0.5f)",
    "hardswish": "({0} < -3.0f ? 0.0f : {0} > 3.0f ? {0} : {0} * ({0} + 3.0f) / 6.0f)",
    # log(1 + e^x) = max(x, 0) + log(1 + e^-|x|), which overflows nowhere.
    "log_sigmoid": "(({0} < 0.0f ? {0} : 0.0f) - {m}log1p({m}exp({0} < 0.0f ? {0} : -{0})))",
    "mish": "({0} * {m}tanh(({0} < 0.0f ? 0.0f : {0}) "
    "+ {m}log1p({m}exp({0} < 0.0f ? {0} : -{0}))))",
    "selu": "(1.05070098f * ({0} > 0.0f ? {0} : 1.67326324f * {m}expm1({0})))",
    "prelu": "({0} > 0.0f ? {0} : {0} * {1})",
    "fmod": "{m}fmod({0}, {1})",
    "atan2": "{m}atan2({0}, {1})",
    "xlogy": "({0} == 0.0f ? 0.0f : {0} * {m}log({1}))",
}
"""Operands become floating point."""

_TRUTHS: Final = {
    "gt": "({0} > {1})",
    "lt": "({0} < {1})",
    "ge": "({0} >= {1})",
    "le": "({0} <= {1})",
    "eq": "({0} == {1})",
    "ne": "({0} != {1})",
    "isnan": "({0} != {0})",
    "isinf": "({0} == INFINITY || {0} == -INFINITY)",
    "logical_not": "(!{0})",
    "logical_and": "({0} && {1})",
    "logical_or": "({0} || {1})",
}
"""The result is true or false."""

_WHOLES: Final = {
    "bitwise_and": "({0} & {1})",
    "bitwise_or": "({0} | {1})",
    "bitwise_xor": "({0} ^ {1})",
}

_SHAPED: Final[dict[str, tuple[str, dict[str, float]]]] = {
    "elu": (
        "({0} > 0.0f ? {0} * {2} : {1} * {2} * {m}expm1({0} * {3}))",
        {"alpha": 1.0, "scale": 1.0, "input_scale": 1.0},
    ),
    "celu": ("({0} > 0.0f ? {0} : {1} * {m}expm1({0} / {1}))", {"alpha": 1.0}),
    "leaky_relu": ("({0} > 0.0f ? {0} : {0} * {1})", {"negative_slope": 0.01}),
    "threshold": (
        "({0} > {1} ? {0} : {0} != {0} ? {0} : {2})",
        {"threshold": 0.0, "value": 0.0},
    ),
    "hardshrink": ("({0} >= -{1} && {0} <= {1} ? 0.0f : {0})", {"lambd": 0.5}),
    "softshrink": (
        "({0} > {1} ? {0} - {1} : {0} < -{1} ? {0} + {1} : {0} * 0.0f)",
        {"lambd": 0.5},
    ),
    "softplus": (
        "({0} * {1} > {2} ? {0} : {m}log1p({m}exp({0} * {1})) / {1})",
        {"beta": 1.0, "threshold": 20.0},
    ),
}
"""Template, then names and defaults of the numbers behind the tensor."""


def _templated(template: str, kind: str) -> Any:
    def operator(p: Program, *operands: Operand, **_: Any) -> Tensor:
        if kind in (NUMBER, WHOLE):
            return p.map(template, *(p.cast(p.tensor(o), kind) for o in operands), kind=kind)
        return p.map(template, *operands, kind=kind)

    return operator


def _shaped(template: str, defaults: dict[str, float]) -> Any:
    def operator(p: Program, x: Tensor, *given: float, **named: float) -> Tensor:
        values = [named.get(name, default) for name, default in defaults.items()]
        values[: len(given)] = given
        return p.map(template, p.cast(x, NUMBER), *(float(value) for value in values))

    return operator


def add(p: Program, x: Operand, y: Operand, alpha: float = 1) -> Tensor:
    """Return `x + alpha * y`."""
    return p.map("({0} + {1})", x, y if alpha == 1 else p.map("({0} * {1})", y, alpha))


def _sub(p: Program, x: Operand, y: Operand, alpha: float = 1) -> Tensor:
    return p.map("({0} - {1})", x, y if alpha == 1 else p.map("({0} * {1})", y, alpha))


def _rsub(p: Program, x: Operand, y: Operand, alpha: float = 1) -> Tensor:
    return _sub(p, y, x, alpha)


def _div(p: Program, x: Operand, y: Operand, rounding_mode: str | None = None) -> Tensor:
    template = {None: "({0} / {1})", "floor": "{m}floor({0} / {1})", "trunc": "{m}trunc({0} / {1})"}
    numbers = (p.cast(p.tensor(o), NUMBER) for o in (x, y))
    return p.map(template[rounding_mode], *numbers)


def _remainder(p: Program, x: Operand, y: Operand) -> Tensor:
    quotient = _div(p, x, y, "floor")
    return p.map("({0} - {1} * {2})", x, quotient, y)


_POWERS: Final = {
    2.0: "({0} * {0})",
    3.0: "({0} * {0} * {0})",
    1.0: "{0}",
    0.5: "{m}sqrt({0})",
    -0.5: "(1.0f / {m}sqrt({0}))",
    -1.0: "(1.0f / {0})",
}


def _pow(p: Program, x: Operand, exponent: Operand) -> Tensor:
    base = p.cast(p.tensor(x), NUMBER)
    if isinstance(exponent, int | float) and float(exponent) in _POWERS:
        return p.map(_POWERS[float(exponent)], base)
    return p.map("{m}pow({0}, {1})", base, p.cast(p.tensor(exponent), NUMBER))


def _gelu(p: Program, x: Tensor, approximate: str = "none") -> Tensor:
    if approximate == "tanh":
        inner = "0.797884561f * ({0} + 0.044715f * {0} * {0} * {0})"
        return p.map("(0.5f * {0} * (1.0f + {m}tanh(" + inner + ")))", x)
    return p.map("(0.5f * {0} * (1.0f + {m}erf({0} * 0.707106781f)))", x)


def clamp(p: Program, x: Tensor, min: Any = None, max: Any = None) -> Tensor:  # noqa: A002
    """Return `x` between two bounds; what is not a number stays."""
    if min is not None:
        x = p.map("({0} < {1} ? {1} : {0})", x, min)
    return x if max is None else p.map("({0} > {1} ? {1} : {0})", x, max)


def _hardtanh(p: Program, x: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    return clamp(p, x, min_val, max_val)


def where(p: Program, condition: Tensor, x: Operand, y: Operand) -> Tensor:
    """Return `x` where the condition holds, else `y`."""
    tensors = [p.tensor(x), p.tensor(y)]
    kind = widest(tensors)
    chosen = [p.cast(t, kind) for t in tensors]
    return p.map("({0} ? {1} : {2})", p.cast(condition, TRUTH), *chosen, kind=kind)


def _masked_fill(p: Program, x: Tensor, mask: Tensor, value: Operand) -> Tensor:
    if not isinstance(value, Tensor):
        value = p.cast(p.full((), value), x.kind)
    return where(p, mask, value, x)


def _addcmul(p: Program, x: Tensor, y: Tensor, z: Tensor, value: float = 1) -> Tensor:
    return p.map("({0} + {3} * {1} * {2})", x, y, z, value)


def _addcdiv(p: Program, x: Tensor, y: Tensor, z: Tensor, value: float = 1) -> Tensor:
    return p.map("({0} + {3} * {1} / {2})", x, y, z, value)


def _lerp(p: Program, x: Tensor, end: Tensor, weight: Operand) -> Tensor:
    return p.map("({0} + {2} * ({1} - {0}))", x, end, weight)


def _dropout(p: Program, x: Tensor, probability: float, train: bool) -> Tensor:
    if train and probability:
        raise RecipeUnsupported("aten.dropout in training")
    return x


def _identity(p: Program, x: Tensor, *_: Any, **__: Any) -> Tensor:
    return x


def _to(p: Program, x: Tensor, *arguments: Any, **named: Any) -> Tensor:
    names = (a.removeprefix("torch.") for a in (*arguments, *named.values()) if isinstance(a, str))
    dtype = next((name for name in names if name in KINDS), "")
    return p.cast(x, KINDS[dtype]) if dtype else x


ELEMENTWISE: Final[dict[str, Any]] = {
    **{name: _templated(text, "") for name, text in _SAME.items()},
    **{name: _templated(text, NUMBER) for name, text in _NUMBERS.items()},
    **{name: _templated(text, TRUTH) for name, text in _TRUTHS.items()},
    **{name: _templated(text, WHOLE) for name, text in _WHOLES.items()},
    **{name: _shaped(*entry) for name, entry in _SHAPED.items()},
    **dict.fromkeys(("clamp", "clip"), clamp),
    **dict.fromkeys(
        ("clone", "contiguous", "detach", "alias", "identity", "lift_fresh_copy", "positive"),
        _identity,
    ),
    **dict.fromkeys(("dropout", "feature_dropout", "alpha_dropout"), _dropout),
    **dict.fromkeys(("to", "_to_copy", "type_as"), _to),
    "add": add,
    "sub": _sub,
    "rsub": _rsub,
    "div": _div,
    "true_divide": _div,
    "floor_divide": lambda p, x, y: _div(p, x, y, "floor"),
    "remainder": _remainder,
    "pow": _pow,
    "gelu": _gelu,
    "clamp_min": clamp,
    "clamp_max": lambda p, x, max: clamp(p, x, None, max),  # noqa: A006
    "hardtanh": _hardtanh,
    "where": where,
    "masked_fill": _masked_fill,
    "addcmul": _addcmul,
    "addcdiv": _addcdiv,
    "lerp": _lerp,
    "square": lambda p, x: p.map("({0} * {0})", x),
}
