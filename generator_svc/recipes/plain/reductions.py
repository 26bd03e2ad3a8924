"""Reductions, normalisations and losses, made of sums, extrema and operations on elements."""

from collections.abc import Sequence
from typing import Any, Final

from generator_svc.recipes.plain.elementwise import where
from generator_svc.recipes.plain.program import Program
from generator_svc.recipes.plain.sizes import product
from generator_svc.recipes.plain.tensors import NUMBER, TRUTH, WHOLE, Tensor

Axes = int | Sequence[int] | None


def _axes(x: Tensor, axes: Axes) -> list[int]:
    if axes is None or axes == []:
        return list(range(len(x.shape)))
    rank = max(len(x.shape), 1)
    return [axis % rank for axis in ([axes] if isinstance(axes, int) else axes)]


def _count(p: Program, x: Tensor, axes: Sequence[int]) -> Tensor:
    count = product((x.shape[axis] for axis in axes if x.shape), p.one)
    return p.cast(p.number(count), NUMBER)


def _sum(p: Program, x: Tensor, dim: Axes = None, keepdim: bool = False, **_: Any) -> Tensor:
    x = p.cast(x, WHOLE) if x.kind == TRUTH else x
    return p.reduce("sum", x, _axes(x, dim), keeps=keepdim)


def mean(p: Program, x: Tensor, dim: Axes = None, keepdim: bool = False, **_: Any) -> Tensor:
    """Return the mean over axes."""
    axes = _axes(x, dim)
    total = p.reduce("sum", p.cast(x, NUMBER), axes, keeps=keepdim)
    return p.map("({0} / {1})", total, _count(p, x, axes))


def _extreme(how: str) -> Any:
    def operator(p: Program, x: Tensor, dim: Axes = None, keepdim: bool = False) -> Tensor:
        return p.reduce(how, x, _axes(x, dim), keeps=keepdim)

    return operator


def _place(how: str) -> Any:
    """Return the first position of an extreme."""

    def operator(p: Program, x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
        if dim is None:
            x, dim = p.view(p.at_hand(x), (product(x.shape, p.one),)), 0
        x, axis = p.at_hand(x), dim % len(x.shape)
        extreme = p.store(p.reduce(how, x, [axis], keeps=True))
        is_there = p.map("({0} == {1} || {0} != {0})", x, extreme, kind=TRUTH)
        places = where(
            p, is_there, p.positions(x.shape, axis), p.cast(p.number(x.shape[axis]), WHOLE)
        )
        return p.reduce("min", places, [axis], keeps=keepdim)

    return operator


def _extreme_and_place(how: str) -> Any:
    def operator(p: Program, x: Tensor, other: Any = None, keepdim: bool = False) -> Any:
        x = p.at_hand(x)
        if other is None:
            return p.reduce(how, x, _axes(x, None))
        if isinstance(other, Tensor):
            sign = ">" if how == "max" else "<"
            return p.map(f"(({{0}} {sign} {{1}} || {{0}} != {{0}}) ? {{0}} : {{1}})", x, other)
        extreme = p.reduce(how, x, [other], keeps=keepdim)
        return extreme, _place(how)(p, x, other, keepdim)

    return operator


def _truth(how: str) -> Any:
    def operator(p: Program, x: Tensor, dim: Axes = None, keepdim: bool = False) -> Tensor:
        whole = p.cast(p.cast(x, TRUTH), WHOLE)
        return p.cast(p.reduce(how, whole, _axes(x, dim), keeps=keepdim), TRUTH)

    return operator


def moments(
    p: Program, x: Tensor, axes: Sequence[int], keeps: bool = True
) -> tuple[Tensor, Tensor]:
    """Return (mean, sum of squares of the differences from it) over axes."""
    x = p.loop_free(x)
    middle = p.store(mean(p, x, list(axes), True))
    squares = p.map("(({0} - {1}) * ({0} - {1}))", p.cast(x, NUMBER), middle)
    return middle, p.reduce("sum", squares, axes, keeps=keeps)


def _variance(
    p: Program, x: Tensor, dim: Axes | bool = None, unbiased: bool = True, keepdim: bool = False,
    correction: float | None = None,
) -> Tensor:  # fmt: skip
    if isinstance(dim, bool):  # as PyTorch's var(x, unbiased)
        return _variance(p, x, None, dim)
    less = correction if correction is not None else float(unbiased)
    axes = _axes(x, dim)
    _, squares = moments(p, x, axes, keepdim)
    return p.map("({0} / ({1} - {2}))", squares, _count(p, x, axes), float(less))


def _deviation(p: Program, *arguments: Any, **named: Any) -> Tensor:
    return p.map("{m}sqrt({0})", _variance(p, *arguments, **named))


def _variance_and_mean(p: Program, x: Tensor, dim: Axes = None, *rest: Any, **named: Any) -> Any:
    x = p.loop_free(x)
    keeps = named.get("keepdim", False)
    return _variance(p, x, dim, *rest, **named), mean(p, x, dim, keeps)


def _norm(
    p: Program, x: Tensor, ord: float = 2, dim: Axes = None, keepdim: bool = False, **_: Any  # noqa: A002
) -> Tensor:  # fmt: skip
    axes, x = _axes(x, dim), p.cast(x, NUMBER)
    size = p.map("{m}fabs({0})", x)
    if ord in (float("inf"), float("-inf")):
        return p.reduce("max" if ord > 0 else "min", size, axes, keeps=keepdim)
    if ord == 1:
        return p.reduce("sum", size, axes, keeps=keepdim)
    if ord == 2:
        return p.map("{m}sqrt({0})", p.reduce("sum", p.map("({0} * {0})", x), axes, keeps=keepdim))
    powers = p.map("{m}pow({0}, {1})", size, float(ord))
    return p.map("{m}pow({0}, {1})", p.reduce("sum", powers, axes, keeps=keepdim), 1.0 / ord)


def exponentials(
    p: Program, x: Tensor, axes: Sequence[int], *, is_finite: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """Return (x, its maximum, the sum of exponentials about it) over axes.

    With `is_finite` an infinite maximum counts as 0, as in PyTorch's logsumexp.
    """
    x = p.cast(p.loop_free(x), NUMBER)
    top: Tensor = p.store(p.reduce("max", x, axes, keeps=True))
    if is_finite:
        top = p.map("({m}fabs({0}) == INFINITY ? 0.0f : {0})", top)
    total = p.reduce("sum", p.map("{m}exp({0} - {1})", x, top), axes, keeps=True)
    return x, top, p.store(total)


def softmax(p: Program, x: Tensor, dim: int, *_: Any, **__: Any) -> Tensor:
    """Return exponentials over their sum."""
    x, top, total = exponentials(p, x, [dim])
    return p.map("({m}exp({0} - {1}) / {2})", x, top, total)


def log_softmax(p: Program, x: Tensor, dim: int, *_: Any, **__: Any) -> Tensor:
    """Return the logarithm of the softmax."""
    x, top, total = exponentials(p, x, [dim])
    return p.map("({0} - {1} - {m}log({2}))", x, top, total)


def _logsumexp(p: Program, x: Tensor, dim: Axes, keepdim: bool = False) -> Tensor:
    axes = _axes(x, dim)
    _, top, total = exponentials(p, x, axes, is_finite=True)
    found = p.map("({m}log({0}) + {1})", total, top)
    return found if keepdim else squeezed(p, found, axes)


def squeezed(p: Program, x: Tensor, axes: Sequence[int]) -> Tensor:
    """Return `x` without the dimensions at `axes`."""
    return p.view(x, tuple(size for place, size in enumerate(x.shape) if place not in axes))


def _affine(p: Program, x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    x = x if weight is None else p.map("({0} * {1})", x, weight)
    return x if bias is None else p.map("({0} + {1})", x, bias)


def normalised(p: Program, x: Tensor, axes: Sequence[int], eps: float) -> Tensor:
    """Return `x` with mean 0 and variance 1 over axes."""
    x = p.loop_free(x)
    middle, squares = moments(p, x, axes)
    count = _count(p, x, axes)
    scale = p.map("(1.0f / {m}sqrt({0} / {1} + {2}))", squares, count, float(eps))
    return p.map("(({0} - {1}) * {2})", p.cast(x, NUMBER), middle, p.store(scale))


def _layer_norm(
    p: Program, x: Tensor, normalized_shape: Sequence[Any], weight: Tensor | None = None,
    bias: Tensor | None = None, eps: float = 1e-5, *_: Any, **__: Any,
) -> Tensor:  # fmt: skip
    rank = len(x.shape)
    axes = range(rank - len(normalized_shape), rank)
    return _affine(p, normalised(p, x, list(axes), eps), weight, bias)


def _rms_norm(
    p: Program, x: Tensor, normalized_shape: Sequence[Any], weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:  # fmt: skip
    rank = len(x.shape)
    axes = list(range(rank - len(normalized_shape), rank))
    x = p.cast(p.loop_free(x), NUMBER)
    power = mean(p, p.map("({0} * {0})", x), axes, True)
    # torch takes the smallest step above 1 of the data type when no epsilon is given.
    small = 1.1920929e-07 if eps is None else eps
    scale = p.store(p.map("(1.0f / {m}sqrt({0} + {1}))", power, float(small)))
    return _affine(p, p.map("({0} * {1})", x, scale), weight, None)


def channelled(p: Program, tensor: Tensor, rank: int) -> Tensor:
    """Return one value a channel, to be broadcast over batch and places."""
    return p.view(tensor, (*tensor.shape, *[p.one] * (rank - 2)))


def _group_norm(
    p: Program, x: Tensor, num_groups: int, weight: Tensor | None = None,
    bias: Tensor | None = None, eps: float = 1e-5, *_: Any, **__: Any,
) -> Tensor:  # fmt: skip
    batch, channels, *places = x.shape
    groups = p.size(num_groups)
    rest = product([channels // groups, *places], p.one)
    x = p.at_hand(x)
    found = normalised(p, p.view(x, (batch, groups, rest)), [2], eps)
    found = p.view(found, x.shape)
    rank = len(x.shape)
    return _affine(p, found, *(t and channelled(p, t, rank) for t in (weight, bias)))


def _batch_norm(
    p: Program, x: Tensor, weight: Tensor | None, bias: Tensor | None,
    running_mean: Tensor | None, running_var: Tensor | None, training: bool,
    momentum: float, eps: float, *_: Any, **__: Any,
) -> Tensor:  # fmt: skip
    rank = len(x.shape)
    if training or running_mean is None or running_var is None:
        found = normalised(p, x, [0, *range(2, rank)], eps)
    else:
        middle, variance = (channelled(p, t, rank) for t in (running_mean, running_var))
        scale = "(({0} - {1}) / {m}sqrt({2} + {3}))"
        found = p.map(scale, p.cast(x, NUMBER), middle, variance, float(eps))
    return _affine(p, found, *(t and channelled(p, t, rank) for t in (weight, bias)))


def _instance_norm(
    p: Program, x: Tensor, weight: Tensor | None, bias: Tensor | None,
    running_mean: Tensor | None, running_var: Tensor | None, use_input_stats: bool,
    momentum: float, eps: float, *_: Any, **__: Any,
) -> Tensor:  # fmt: skip
    if not use_input_stats:
        return _batch_norm(p, x, weight, bias, running_mean, running_var, False, momentum, eps)
    rank = len(x.shape)
    found = normalised(p, x, range(2, rank), eps)
    return _affine(p, found, *(t and channelled(p, t, rank) for t in (weight, bias)))


def _scan(how: str) -> Any:
    def operator(p: Program, x: Tensor, dim: int, **_: Any) -> Tensor:
        x = p.cast(x, WHOLE) if x.kind == TRUTH else x
        return p.scan(how, x, dim % len(x.shape)) if x.shape else x

    return operator


def folded(p: Program, x: Tensor, reduction: int) -> Tensor:
    """Return a loss of each element as PyTorch's reduction 0 (none), 1 (mean) or 2 (sum) has it."""
    return {0: lambda: x, 1: lambda: mean(p, x), 2: lambda: _sum(p, x)}[reduction]()


REDUCTIONS: Final[dict[str, Any]] = {
    "sum": _sum,
    "mean": mean,
    "amax": _extreme("max"),
    "amin": _extreme("min"),
    "max": _extreme_and_place("max"),
    "min": _extreme_and_place("min"),
    "argmax": _place("max"),
    "argmin": _place("min"),
    "prod": lambda p, x, dim=None, keepdim=False, **_: p.reduce(
        "product", x, _axes(x, dim), keeps=keepdim
    ),
    "any": _truth("max"),
    "all": _truth("min"),
    "var": _variance,
    "std": _deviation,
    "var_mean": _variance_and_mean,
    "linalg_vector_norm": _norm,
    "norm": _norm,
    "logsumexp": _logsumexp,
    "softmax": softmax,
    "_softmax": softmax,
    "log_softmax": log_softmax,
    "_log_softmax": log_softmax,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "group_norm": _group_norm,
    "batch_norm": _batch_norm,
    "instance_norm": _instance_norm,
    "cumsum": _scan("sum"),
    "cumprod": _scan("product"),
}
