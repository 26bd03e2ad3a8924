"""Losses."""

from typing import Any, Final

from generator_svc.recipes.plain.elementwise import where
from generator_svc.recipes.plain.program import Program
from generator_svc.recipes.plain.reductions import (
    exponentials,
    folded,
    log_softmax,
)
from generator_svc.recipes.plain.tensors import NUMBER, TRUTH, Index, KernelBody, Tensor
from generator_svc.recipes.unsupported import RecipeUnsupported

_DIFFERENCE = "({0} - {1})"


def _of_difference(template: str, *defaults: float) -> Any:
    """Return a loss of `d = x - y`; numbers, such as beta, come behind the reduction."""

    def operator(
        p: Program, x: Tensor, y: Tensor, reduction: int = 1, *given: float, **named: float
    ) -> Tensor:
        numbers = [*given, *named.values()] or list(defaults)
        difference = p.map(_DIFFERENCE, p.cast(x, NUMBER), y)
        return folded(p, p.map(template, difference, *(float(n) for n in numbers)), reduction)

    return operator


def _cross_entropy(
    p: Program, x: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 1,
    ignore_index: int = -100, label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    axis = 0 if len(x.shape) == 1 else 1
    if target.kind == NUMBER:
        if weight is not None or label_smoothing:
            raise RecipeUnsupported("aten.cross_entropy_loss of probabilities with weights")
        each = p.map("(-{0} * {1})", log_softmax(p, x, axis), target)
        loss = p.reduce("sum", each, [axis])
        return folded(p, loss, reduction)
    x, top, total = exponentials(p, x, [axis])
    likelihood = p.map("({0} - {1} - {m}log({2}))", x, top, total)
    if not label_smoothing:
        return _nll(p, likelihood, target, weight, reduction, ignore_index)
    # A share of the target's likelihood goes to all classes alike, each by its weight.
    each = likelihood if weight is None else p.map("({0} * {1})", likelihood, _along(p, weight, x))
    classes = p.cast(p.number(x.shape[axis]), NUMBER)
    others = p.map("({0} * {1} / {2})", p.reduce("sum", each, [axis]), label_smoothing, classes)
    return _nll(
        p, likelihood, target, weight, reduction, ignore_index,
        smoothing=(label_smoothing, p.store(others)),
    )  # fmt: skip


def _along(p: Program, weight: Tensor, x: Tensor) -> Tensor:
    """Return the weights of classes along the axis of classes of `x`."""
    for _ in x.shape[2:]:
        weight = p.unsqueeze(weight, -1)
    return weight


def _nll(
    p: Program, x: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 1,
    ignore_index: int = -100, smoothing: tuple[float, Tensor] | None = None,
) -> Tensor:  # fmt: skip
    axis = 0 if len(x.shape) == 1 else 1
    target = p.at_hand(target)
    wanted = p.map("({0} != {1})", target, ignore_index, kind=TRUTH)

    def move(body: KernelBody, index: Index) -> Index:
        safe = f"({body.read(wanted, index)} ? {body.read(target, index)} : 0)"
        return (*index[:axis], body.name("Index", safe), *index[axis:])

    picked = p.moved(x, target.shape, move)
    factor: Any = 1.0
    if weight is not None:
        of = weight
        factor = p.moved(of, target.shape, lambda b, i: (move(b, i)[axis],))
    each = p.map("(-{0} * {1})", picked, factor)
    if smoothing:
        share, others = smoothing
        each = p.map("({0} * {1} - {2})", each, 1.0 - share, others)
    loss = where(p, wanted, each, 0.0)
    if reduction != 1:
        return folded(p, loss, reduction)
    counted = where(p, wanted, p.expand(p.map("{0}", factor), target.shape), 0.0)
    return p.map("({0} / {1})", folded(p, loss, 2), p.store(folded(p, counted, 2)))


def _kl_div(
    p: Program, x: Tensor, target: Tensor, reduction: int = 1, *, log_target: bool = False
) -> Tensor:
    if log_target:
        each = p.map("({m}exp({1}) * ({1} - {0}))", x, target)
    else:
        each = p.map("(({1} == 0.0f ? 0.0f : {1} * {m}log({1})) - {1} * {0})", x, target)
    return folded(p, each, reduction)


def _binary(
    p: Program, x: Tensor, y: Tensor, weight: Tensor | None = None, reduction: int = 1
) -> Tensor:
    # PyTorch bounds the logarithms from below.
    low = "({m}log({0}) < -100.0f ? -100.0f : {m}log({0}))"
    yes, no = p.map(low, x), p.map(low, p.map("(1.0f - {0})", x))
    each = p.map("(({1} - 1.0f) * {2} - {1} * {0})", yes, y, no)
    return folded(p, each if weight is None else p.map("({0} * {1})", each, weight), reduction)


def _binary_of_logits(
    p: Program, x: Tensor, y: Tensor, weight: Tensor | None = None,
    pos_weight: Tensor | None = None, reduction: int = 1,
) -> Tensor:  # fmt: skip
    log = "(({0} < 0.0f ? -{0} : 0.0f) + {m}log1p({m}exp({0} < 0.0f ? {0} : -{0})))"
    factor = 1.0 if pos_weight is None else p.map("(1.0f + ({0} - 1.0f) * {1})", pos_weight, y)
    each = p.map("((1.0f - {1}) * {0} + {2} * {3})", x, y, factor, p.map(log, x))
    return folded(p, each if weight is None else p.map("({0} * {1})", each, weight), reduction)


def _hinge(p: Program, x: Tensor, y: Tensor, margin: float = 1.0, reduction: int = 1) -> Tensor:
    far = "({1} == 1.0f ? 0.0f : {2} - {0} < 0.0f ? 0.0f : {2} - {0})"
    each = p.map(far + " + ({1} == -1.0f ? 0.0f : {0})", x, p.cast(y, NUMBER), float(margin))
    return folded(p, each, reduction)


def _cosine(p: Program, x: Tensor, y: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    def total(one: Tensor, other: Tensor) -> Tensor:
        return p.store(p.reduce("sum", p.map("({0} * {1})", one, other), [dim]))

    template = "({0} / ({m}fmax({m}sqrt({1}), {3}) * {m}fmax({m}sqrt({2}), {3})))"
    return p.map(template, total(x, y), total(x, x), total(y, y), float(eps))


def _distance(p: Program, x: Tensor, y: Tensor, power: float, eps: float) -> Tensor:
    if power != 2:
        raise RecipeUnsupported(f"a distance of power {power}")
    squares = p.map("(({0} - {1} + {2}) * ({0} - {1} + {2}))", x, y, float(eps))
    return p.store(p.map("{m}sqrt({0})", p.reduce("sum", squares, [-1])))


def _triplet(
    p: Program, anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0,
    power: float = 2.0, eps: float = 1e-6, swap: bool = False, reduction: int = 1, **named: Any,
) -> Tensor:  # fmt: skip
    if swap:
        raise RecipeUnsupported("aten.triplet_margin_loss with swap")
    near = _distance(p, anchor, positive, named.get("p", power), eps)
    far = _distance(p, anchor, negative, named.get("p", power), eps)
    each = p.map("({2} + {0} - {1} < 0.0f ? 0.0f : {2} + {0} - {1})", near, far, float(margin))
    return folded(p, each, reduction)


LOSSES: Final[dict[str, Any]] = {
    "mse_loss": _of_difference("({0} * {0})"),
    "l1_loss": _of_difference("{m}fabs({0})"),
    "smooth_l1_loss": _of_difference(
        "({m}fabs({0}) < {1} ? 0.5f * {0} * {0} / {1} : {m}fabs({0}) - 0.5f * {1})", 1.0
    ),
    "huber_loss": _of_difference(
        "({m}fabs({0}) <= {1} ? 0.5f * {0} * {0} : {1} * ({m}fabs({0}) - 0.5f * {1}))", 1.0
    ),
    "cross_entropy_loss": _cross_entropy,
    "nll_loss": _nll,
    "nll_loss_nd": _nll,
    "kl_div": _kl_div,
    "binary_cross_entropy": _binary,
    "binary_cross_entropy_with_logits": _binary_of_logits,
    "hinge_embedding_loss": _hinge,
    "soft_margin_loss": lambda p, x, y, reduction=1: folded(
        p, p.map("{m}log1p({m}exp(-{1} * {0}))", x, y), reduction
    ),
    "cosine_similarity": _cosine,
    "triplet_margin_loss": _triplet,
    "pairwise_distance": lambda p, x, y, power=2.0, eps=1e-6: _distance(p, x, y, power, eps),
}
