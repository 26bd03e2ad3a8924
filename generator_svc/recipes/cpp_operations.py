"""C++ of operations, literals and accumulations, shared by the languages.

Each language gives the names of its functions.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

_TEMPLATES = {
    "add": "({0} + {1})",
    "sub": "({0} - {1})",
    "mul": "({0} * {1})",
    "div": "({0} / {1})",
    "max": "({T}({0}) > {T}({1}) ? {T}({0}) : {T}({1}))",
    "min": "({T}({0}) < {T}({1}) ? {T}({0}) : {T}({1}))",
    "pow": "{pow}({T}({0}), {T}({1}))",
    "neg": "(-{0})",
    "abs": "{abs}({0})",
    "sqrt": "{sqrt}({0})",
    "rsqrt": "(1.0f / {sqrt}({0}))",
    "log": "{log}({0})",
    "tanh": "(1.0f - 2.0f / (1.0f + {exp}(2.0f * {0})))",
    "exp": "{exp}({0})",
    "erf": "{erf}({0})",
    "sigmoid": "(1.0f / (1.0f + {exp}(-{0})))",
    "silu": "({0} / (1.0f + {exp}(-{0})))",
    "gelu": "(0.5f * {0} * (1.0f + {erf}({0} * 0.70710678f)))",
    # 0.5 * (1 + tanh(z)) is the sigmoid of 2 z.
    "gelu_tanh": "({0} / (1.0f + {exp}(-1.59576912f * ({0} + 0.044715f * {0} * {0} * {0}))))",
    # log(1 + e^x) = max(x, 0) + log(1 + e^-|x|), which overflows nowhere.
    "softplus": "({fmax}({T}({0}), {T}(0.0f)) + {log}(1.0f + {exp}(-{abs}({0}))))",
}

USES_EXP = frozenset({"exp", "sigmoid", "silu", "softplus", "tanh", "gelu_tanh", "exp_sum"})
"""Operations and reductions that call the exponential."""

USES_ERF = frozenset({"erf", "gelu"})
"""Operations that call the error function."""

NEUTRAL = {"sum": "0.0f", "max": "-INFINITY", "min": "INFINITY"}
"""Neutral element of each reduction."""

_JOINED_BY = {"sum": "add", "max": "max", "min": "min"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelling:
    """How a language writes operations, in one style."""

    names: Mapping[str, str]
    """Its functions: exp, erf, log, sqrt, abs, fmax, pow."""
    own: Mapping[str, str] = field(default_factory=dict)
    """Templates of operations that it has better ones of."""
    brought: tuple[tuple[frozenset[str], str], ...] = ()
    """Code that kernels bring along, each behind the operations that call it."""

    def apply(self, operation: str, operands: list[str], element_type: str) -> str:
        """Return the expression of an operation on operands of the C++ type `element_type`."""
        template = self.own.get(operation, _TEMPLATES[operation])
        return template.format(*operands, T=element_type, **self.names)

    def join(self, kind: str, first: str, second: str, element_type: str = "float") -> str:
        """Return the expression that joins two parts of a reduction."""
        return self.apply(_JOINED_BY[kind], [first, second], element_type)

    def accumulate(self, kind: str, part: str, value: str, element_type: str = "float") -> str:
        """Return the statement that takes `value` into a part of a reduction."""
        if kind == "sum":
            return f"{part} += {value};"
        return f"{part} = {self.join(kind, value, part, element_type)};"

    def functions(self, used: frozenset[str]) -> str:
        """Return the code that the operations in `used` need."""
        return "".join(code for callers, code in self.brought if callers & used)


def literal(number: float) -> str:
    """Return a float literal."""
    if math.isnan(number):
        return "NAN"
    if math.isinf(number):
        return "INFINITY" if number > 0 else "-INFINITY"
    return f"({float(number)!r}f)" if number < 0 else f"{float(number)!r}f"
