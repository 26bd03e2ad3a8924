"""Tensors that are made in the reference itself."""

from typing import Any, Final

from generator_svc.recipes.plain.languages import KINDS
from generator_svc.recipes.plain.program import Program
from generator_svc.recipes.plain.tensors import TRUTH, WHOLE, Tensor
from generator_svc.recipes.unsupported import RecipeUnsupported


def _constant(number: float) -> Any:
    def operator(p: Program, like: Any, *_: Any, **named: Any) -> Tensor:
        shape = like.shape if isinstance(like, Tensor) else tuple(p.size(s) for s in like)
        return _as_asked(p, p.full(shape, float(number)), named)

    return operator


def _full(p: Program, like: Any, number: Any, **named: Any) -> Tensor:
    shape = like.shape if isinstance(like, Tensor) else tuple(p.size(s) for s in like)
    return _as_asked(p, p.full(shape, number), named)


def _as_asked(p: Program, x: Tensor, named: dict[str, Any]) -> Tensor:
    dtype = str(named.get("dtype") or "").removeprefix("torch.")
    return p.cast(x, KINDS[dtype]) if dtype in KINDS else x


def _arange(p: Program, *bounds: Any, **named: Any) -> Tensor:
    if any(isinstance(bound, float) for bound in bounds):
        raise RecipeUnsupported("aten.arange of floating point")
    start, end, step = {1: (0, *bounds, 1), 2: (*bounds, 1), 3: bounds}[len(bounds)]
    first = p.size(start)
    count = (p.size(end) - first).up_to(step)
    found = p.map("({0} * {1} + {2})", p.positions((count,), 0), step, p.number(first))
    return _as_asked(p, found, named)


def _one_hot(p: Program, x: Tensor, num_classes: int) -> Tensor:
    x = p.unsqueeze(p.loop_free(x), -1)
    shape = (*x.shape[:-1], p.size(num_classes))
    return p.cast(p.map("({0} == {1})", x, p.positions(shape, len(shape) - 1), kind=TRUTH), WHOLE)


CONSTANTS: Final[dict[str, Any]] = {
    **dict.fromkeys(("zeros", "zeros_like", "new_zeros"), _constant(0)),
    **dict.fromkeys(("ones", "ones_like", "new_ones"), _constant(1)),
    **dict.fromkeys(("full", "full_like", "new_full"), _full),
    "arange": _arange,
    "one_hot": _one_hot,
}
