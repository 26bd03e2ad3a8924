"""Translates an operator graph into expressions over rows.

Covers pointwise chains, reductions over the last axis and normalisations.

How they are computed is decided by `row_schedule` and the languages.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from generator_svc.recipes.expression import (
    COLUMNS,
    Extent,
    Load,
    Value,
    apply,
    literal,
    loaded_tensors,
    mean,
    reduce,
)
from generator_svc.recipes.graph_reader import (
    Reference,
    ReferenceGraph,
    arguments,
    operator_name,
)
from generator_svc.recipes.unsupported import RecipeUnsupported
from kernel_foundry.domain.admission import GraphNode


@dataclass(frozen=True, kw_only=True)
class RowProgram:
    """Outputs as expressions over the rows of a (rows, columns) matrix."""

    outputs: tuple[tuple[str, Value], ...]
    """Output name and value; FULL or ROW."""
    full_tensor: str
    """A tensor of the full shape, from which rows and columns are taken."""

    @property
    def values(self) -> tuple[Value, ...]:
        """The outputs' values."""
        return tuple(value for _, value in self.outputs)

    @property
    def tensors(self) -> tuple[str, ...]:
        """Names of the tensors that it reads, in order of first use."""
        return loaded_tensors(self.values)

    @property
    def parameters(self) -> list[str]:
        """Parameters of its kernel, in C++: what it reads, then what it writes."""
        read = [f"const float* __restrict__ {name}_in" for name in self.tensors]
        return read + [f"float* __restrict__ {name}_to" for name, _ in self.outputs]

    def longest_row(self, graph: ReferenceGraph) -> int:
        """Return the length of a row in the workload that has the longest."""
        return max(shapes[self.full_tensor][-1] for shapes in graph.workload_shapes)


class RowTranslation:
    """Node by node, from graph to expressions.

    Args:
        graph: The operators.
        full_shape: Shape of the matrix of rows.
        one_pass: Take mean and variance in one pass, from values shifted by the row's first.
        online: Take the maximum and the sum of exponentials about it in one pass.
    """

    def __init__(
        self,
        graph: ReferenceGraph,
        full_shape: tuple[int, ...],
        *,
        one_pass: bool,
        online: bool = False,
    ) -> None:
        self._graph = graph
        self._full = full_shape
        self._values: dict[str, Value] = {}
        self._one_pass = one_pass
        self._online = online

    def centre(self, value: Value) -> tuple[Value, Value]:
        """Return (value - mean, sum of its squares) of a row."""
        if not self._one_pass:
            centred = apply("sub", value, mean(value))
            return centred, reduce("sum", apply("mul", centred, centred))
        # Shifting keeps the difference of the two sums from cancelling when the mean is large.
        first = reduce("first", value)
        shifted = apply("sub", value, first)
        total = reduce("sum", shifted)
        offset = apply("div", total, COLUMNS)
        squares = reduce("sum", apply("mul", shifted, shifted))
        centred = apply("sub", value, apply("add", first, offset))
        return centred, apply("sub", squares, apply("mul", total, offset))

    def exponentials(self, value: Value) -> tuple[Value, Value, Value, Value]:
        """Return (maximum, value - maximum, its exponential, the sum of those) of a row."""
        top = reduce("max", value)
        shifted = apply("sub", value, top)
        exponential = apply("exp", shifted)
        total = reduce("exp_sum", value) if self._online else reduce("sum", exponential)
        return top, shifted, exponential, total

    def value(self, argument: Any) -> Value:
        """Return the value of a node's argument."""
        if isinstance(argument, bool) or argument is None:
            raise RecipeUnsupported(f"an operand {argument!r}")
        if isinstance(argument, int | float):
            return literal(argument)
        if not isinstance(argument, Reference):
            raise RecipeUnsupported(f"an operand {argument!r}")
        if argument.name not in self._values:
            if argument.name not in self._graph.inputs:
                raise RecipeUnsupported(f"{argument.name} is not computed by a known operator")
            self._values[argument.name] = self._load(argument.name)
        return self._values[argument.name]

    def define(self, name: str, value: Value) -> None:
        """Take a node's result, for instance that of another recipe."""
        self._values[name] = value

    def translate(self, node: GraphNode) -> None:
        """Define the node's value.

        Raises:
            RecipeUnsupported: the operator is not covered.
        """
        positional, keywords = arguments(node)
        name = node.op.removeprefix("aten.").split(".")[0]
        if name in _IDENTITIES or (name == "dropout" and positional[2] is False):
            self.define(node.name, self.value(positional[0]))
        elif name in _POINTWISE:
            self.define(node.name, _POINTWISE[name](self, positional, keywords))
        elif name in _ROW_OPERATORS:
            self._check_last_axis(node, positional, keywords)
            self.define(node.name, _ROW_OPERATORS[name](self, positional, keywords))
        else:
            raise RecipeUnsupported(operator_name(node))

    def _load(self, name: str) -> Value:
        shape = self._graph.shapes[name]
        if shape == self._full:
            extent = Extent.FULL
        elif all(size == 1 for size in shape):
            extent = Extent.SCALAR
        elif shape[-1] == self._full[-1] and all(size == 1 for size in shape[:-1]):
            extent = Extent.COLUMN
        elif shape == (*self._full[:-1], 1):
            extent = Extent.ROW
        else:
            raise RecipeUnsupported(f"{name} of shape {shape} beside {self._full}")
        return Load(extent=extent, name=name)

    def _check_last_axis(
        self, node: GraphNode, positional: list[Any], keywords: dict[str, Any]
    ) -> None:
        axis = _axis(node.op, positional, keywords)
        operand = self.value(positional[0])
        rank = len(self._full)
        axes = axis if isinstance(axis, list | tuple) else [axis]
        if operand.extent is not Extent.FULL or [a % rank for a in axes] != [rank - 1]:
            raise RecipeUnsupported(f"{node.op} over axis {axis}; recipes reduce the last one")


Builder = Callable[[RowTranslation, list[Any], dict[str, Any]], Value]


def _axis(op: str, positional: list[Any], keywords: dict[str, Any]) -> Any:
    if "norm" in op:
        shape = positional[1]
        return -1 if isinstance(shape, list | tuple) and len(shape) == 1 else list(shape)
    axis = keywords.get("dim", positional[1] if len(positional) > 1 else None)
    if axis is None or axis == []:
        raise RecipeUnsupported(f"{op} over the whole tensor; recipes reduce the last axis")
    return axis


def _unary(operation: str) -> Builder:
    return lambda t, p, _k: apply(operation, t.value(p[0]))


def _binary(operation: str) -> Builder:
    def build(t: RowTranslation, p: list[Any], k: dict[str, Any]) -> Value:
        right = t.value(p[1])
        scale = k.get("alpha", p[2] if len(p) > 2 else 1)
        if scale != 1:
            right = apply("mul", right, literal(scale))
        return apply(operation, t.value(p[0]), right)

    return build


def _gelu(t: RowTranslation, p: list[Any], k: dict[str, Any]) -> Value:
    is_tanh = k.get("approximate", p[1] if len(p) > 1 else "none") == "tanh"
    return apply("gelu_tanh" if is_tanh else "gelu", t.value(p[0]))


def _power(t: RowTranslation, p: list[Any], _k: dict[str, Any]) -> Value:
    base = t.value(p[0])
    if p[1] == 2:
        return apply("mul", base, base)
    if p[1] == 0.5:
        return apply("sqrt", base)
    if p[1] == -0.5:
        return apply("rsqrt", base)
    return apply("pow", base, t.value(p[1]))


def _clamp(t: RowTranslation, p: list[Any], k: dict[str, Any]) -> Value:
    low = k.get("min", p[1] if len(p) > 1 else None)
    high = k.get("max", p[2] if len(p) > 2 else None)
    value = t.value(p[0])
    value = value if low is None else apply("max", value, literal(low))
    return value if high is None else apply("min", value, literal(high))


def _leaky_relu(t: RowTranslation, p: list[Any], k: dict[str, Any]) -> Value:
    value = t.value(p[0])
    slope = k.get("negative_slope", p[1] if len(p) > 1 else 0.01)
    zero = literal(0)
    negative = apply("mul", apply("min", value, zero), literal(slope))
    return apply("add", apply("max", value, zero), negative)


def _softmax(t: RowTranslation, p: list[Any], _k: dict[str, Any]) -> Value:
    _, _, exponential, total = t.exponentials(t.value(p[0]))
    return apply("div", exponential, total)


def _log_softmax(t: RowTranslation, p: list[Any], _k: dict[str, Any]) -> Value:
    _, shifted, _, total = t.exponentials(t.value(p[0]))
    return apply("sub", shifted, apply("log", total))


def _logsumexp(t: RowTranslation, p: list[Any], _k: dict[str, Any]) -> Value:
    top, _, _, total = t.exponentials(t.value(p[0]))
    return apply("add", apply("log", total), top)


def _layer_norm(t: RowTranslation, p: list[Any], k: dict[str, Any]) -> Value:
    centred, squares = t.centre(t.value(p[0]))
    variance = apply("div", squares, COLUMNS)
    epsilon = k.get("eps", p[4] if len(p) > 4 else 1e-5)
    scale = apply("rsqrt", apply("add", variance, literal(epsilon)))
    return _affine(t, apply("mul", centred, scale), p[2:4])


def _rms_norm(t: RowTranslation, p: list[Any], k: dict[str, Any]) -> Value:
    value = t.value(p[0])
    epsilon = k.get("eps", p[3] if len(p) > 3 else None)
    power = mean(apply("mul", value, value))
    # torch takes the smallest step above 1 of the data type when no epsilon is given.
    scale = apply("rsqrt", apply("add", power, literal(epsilon or 1.1920929e-07)))
    return _affine(t, apply("mul", value, scale), p[2:3])


def _affine(t: RowTranslation, value: Value, parameters: list[Any]) -> Value:
    for operation, parameter in zip(("mul", "add"), parameters, strict=False):
        if parameter is not None:
            value = apply(operation, value, t.value(parameter))
    return value


def _variance(t: RowTranslation, p: list[Any], k: dict[str, Any]) -> Value:
    _, squares = t.centre(t.value(p[0]))
    correction = k.get("correction", 1 if k.get("unbiased", True) else 0)
    count = apply("sub", COLUMNS, literal(1 if correction is None else correction))
    return apply("div", squares, count)


def _reduction(kind: str) -> Builder:
    return lambda t, p, _k: reduce(kind, t.value(p[0]))


_IDENTITIES = frozenset(
    {"clone", "contiguous", "detach", "alias", "to", "_to_copy", "identity", "lift_fresh_copy"}
)

_POINTWISE: dict[str, Builder] = {
    "add": _binary("add"),
    "sub": _binary("sub"),
    "mul": _binary("mul"),
    "div": _binary("div"),
    "maximum": _binary("max"),
    "minimum": _binary("min"),
    "pow": _power,
    "gelu": _gelu,
    "clamp": _clamp,
    "hardtanh": _clamp,
    "clamp_min": _clamp,
    "leaky_relu": _leaky_relu,
    "relu": lambda t, p, _k: apply("max", t.value(p[0]), literal(0)),
    "mish": lambda t, p, _k: apply(
        "mul", t.value(p[0]), apply("tanh", apply("softplus", t.value(p[0])))
    ),
    "square": lambda t, p, _k: apply("mul", t.value(p[0]), t.value(p[0])),
    "reciprocal": lambda t, p, _k: apply("div", literal(1), t.value(p[0])),
    **{
        name: _unary(name)
        for name in (
            "exp", "log", "tanh", "sigmoid", "silu", "erf", "sqrt", "rsqrt", "abs", "neg",
            "softplus",
        )
    },
}  # fmt: skip

_ROW_OPERATORS: dict[str, Builder] = {
    "softmax": _softmax,
    "_softmax": _softmax,
    "log_softmax": _log_softmax,
    "_log_softmax": _log_softmax,
    "logsumexp": _logsumexp,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "var": _variance,
    "mean": lambda t, p, _k: mean(t.value(p[0])),
    "sum": _reduction("sum"),
    "amax": _reduction("max"),
    "amin": _reduction("min"),
}


def translate_rows(graph: ReferenceGraph, *, one_pass: bool, online: bool = False) -> RowProgram:
    """Return the graph as a row program.

    Raises:
        RecipeUnsupported: names the operator or shape that no row recipe covers.
    """
    tensors = [graph.shapes[name] for name in graph.inputs if name in graph.shapes]
    full = max([s for s in tensors if s], key=lambda s: (_element_count(s), len(s)), default=())
    if not full:
        raise RecipeUnsupported("no tensor input")
    translation = RowTranslation(graph, full, one_pass=one_pass, online=online)
    for node in graph.nodes:
        translation.translate(node)
    outputs = []
    for name, result in zip(graph.outputs, graph.results, strict=True):
        value = translation.value(Reference(name=result))
        if value.extent not in (Extent.FULL, Extent.ROW):
            raise RecipeUnsupported(f"output {name} does not depend on a whole input")
        outputs.append((name, value))
    return RowProgram(outputs=tuple(outputs), full_tensor=_full_tensor(graph, full))


def _full_tensor(graph: ReferenceGraph, full: tuple[int, ...]) -> str:
    return min(name for name in graph.inputs if graph.shapes.get(name) == full)


def _element_count(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count
