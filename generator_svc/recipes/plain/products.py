"""Matrix products, convolutions and attention: sums of products that are read where they are."""

from collections.abc import Sequence
from typing import Any, Final

from generator_svc.recipes.plain.elementwise import where
from generator_svc.recipes.plain.program import Operand, Program
from generator_svc.recipes.plain.reductions import softmax, squeezed
from generator_svc.recipes.plain.sizes import Shape, SymbolicSize
from generator_svc.recipes.plain.tensors import NUMBER, TRUTH, Index, KernelBody, Tensor
from generator_svc.recipes.unsupported import RecipeUnsupported


def _contracted(p: Program, x: Tensor, y: Tensor, loops: int) -> Tensor:
    """Return the sum over the last dimensions of the product of two tensors that broadcast."""
    x, y = (p.at_hand(t) for t in (x, y))
    return p.fold("sum", p.map("({0} * {1})", x, y), loops, is_shared=False)


def _turned(p: Program, x: Tensor) -> Tensor:
    rank = len(x.shape)
    return p.permute(x, [*range(rank - 2), rank - 1, rank - 2])


def matmul(p: Program, x: Tensor, y: Tensor) -> Tensor:
    """Return the product of vectors, matrices or batches of matrices."""
    rows = x if len(x.shape) > 1 else p.unsqueeze(x, 0)
    columns = _turned(p, y) if len(y.shape) > 1 else p.unsqueeze(y, 0)
    # (…, m, 1, k) and (…, 1, n, k)
    found = _contracted(p, p.unsqueeze(rows, -2), p.unsqueeze(columns, -3), 1)
    rank = len(found.shape)
    lost = [rank - 2] * (len(x.shape) == 1) + [rank - 1] * (len(y.shape) == 1)
    return squeezed(p, found, lost) if lost else found


def _linear(p: Program, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    found = _contracted(p, p.unsqueeze(x, -2), weight, 1)
    return found if bias is None else p.map("({0} + {1})", found, bias)


def _addmm(
    p: Program, bias: Tensor, x: Tensor, y: Tensor, beta: float = 1, alpha: float = 1
) -> Tensor:
    return p.map("({0} * {2} + {1} * {3})", matmul(p, x, y), bias, float(alpha), float(beta))


def _einsum(p: Program, equation: str, tensors: Sequence[Tensor], **_: Any) -> Tensor:
    left, arrow, result = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if not arrow or "." in equation or any(len(set(t)) < len(t) for t in terms):
        raise RecipeUnsupported(f"aten.einsum of {equation}")
    summed = sorted(set(left) - set(result) - {","})
    order = [*result, *summed]
    views = []
    for term, tensor in zip(terms, tensors, strict=True):
        labels = [label for label in order if label in term]
        view = p.permute(p.at_hand(tensor), [term.index(label) for label in labels])
        for place, label in enumerate(order):
            view = view if label in term else p.unsqueeze(view, place)
        views.append(view)
    template = "(" + " * ".join(f"{{{n}}}" for n in range(len(views))) + ")"
    whole = p.map(template, *views)
    return p.fold("sum", whole, len(summed), is_shared=False) if summed else whole


def _attention(
    p: Program, query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
    dropout_p: float = 0.0, is_causal: bool = False, scale: Operand | None = None,
    enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    if dropout_p or enable_gqa:
        raise RecipeUnsupported("aten.scaled_dot_product_attention with dropout or grouped heads")
    width = p.cast(p.number(query.shape[-1]), NUMBER)
    factor = p.map("(1.0f / {m}sqrt({0}))", width) if scale is None else scale
    scores = p.map("({0} * {1})", matmul(p, query, _turned(p, key)), factor)
    lowest = float("-inf")
    if is_causal:
        rank = len(scores.shape)
        rows, columns = (p.positions(scores.shape, axis) for axis in (rank - 2, rank - 1))
        scores = where(p, p.map("({0} <= {1})", columns, rows, kind=TRUTH), scores, lowest)
    if attn_mask is not None and attn_mask.kind == TRUTH:
        scores = where(p, attn_mask, scores, lowest)
    elif attn_mask is not None:
        scores = p.map("({0} + {1})", scores, attn_mask)
    return matmul(p, p.store(softmax(p, p.store(scores), -1)), value)


def each(numbers: Any, count: int) -> list[Any]:
    """Return one number for each of `count` dimensions."""
    found = list(numbers) if isinstance(numbers, list | tuple) else [numbers]
    return found * count if len(found) == 1 else found


def window(at: str, step: int, offset: str, spread: int, pad: int) -> str:
    """Return C++ of a position under a window: `at * step + offset * spread - pad`."""
    text = at if step == 1 else f"{at} * {step}"
    if offset != "0":
        text = f"{text} + {offset}" + (f" * {spread}" if spread != 1 else "")
    return f"({text} - {pad})" if pad else f"({text})"


def window_count(
    size: SymbolicSize, kernel: SymbolicSize, step: int, spread: int, pads: int
) -> SymbolicSize:
    """Return how many windows fit a size that is padded by `pads` in all."""
    return (size + pads - (kernel - 1) * spread - 1) // step + 1


def _convolution(
    p: Program, x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1,
    padding: Any = 0, dilation: Any = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    if len(x.shape) < len(weight.shape):
        return squeezed(p, _convolution(p, p.unsqueeze(x, 0), weight, bias, stride, padding,
                                        dilation, groups), [0])  # fmt: skip
    places = len(x.shape) - 2
    steps, spreads = each(stride, places), each(dilation, places)
    kernel, sizes = weight.shape[2:], x.shape[2:]
    if padding == "same":
        totals = [(k.values[0] - 1) * d for k, d in zip(kernel, spreads, strict=True)]
        pads = [total // 2 for total in totals]
    else:
        pads = [0] * places if padding == "valid" else each(padding, places)
        totals = [2 * pad for pad in pads]
    counts = [window_count(*of) for of in zip(sizes, kernel, steps, spreads, totals, strict=True)]
    inner, each_group = weight.shape[1], weight.shape[0] // groups
    shape = (x.shape[0], weight.shape[0], *counts, inner, *kernel)

    def channel(body: KernelBody, index: Index) -> str:
        at = index[2 + places]
        if groups == 1:
            return at
        return f"({index[1]} / {body.macro(each_group)} * {body.macro(inner)} + {at})"

    def move(body: KernelBody, index: Index) -> Index:
        at = zip(index[2:], steps, index[3 + places :], spreads, pads, strict=False)
        inside = [body.name("Index", window(*of)) for of in at]
        return (index[0], body.name("Index", channel(body, index)), *inside)

    padded = any(totals)
    view = p.inside(x, shape, move, "0") if padded else p.moved(p.at_hand(x), shape, move)
    factors = p.moved(p.at_hand(weight), shape, lambda _, i: (i[1], *i[2 + places :]))
    return _with_bias(p, p.fold("sum", p.map("({0} * {1})", view, factors), 1 + places,
                                is_shared=False), bias)  # fmt: skip


def _transposed(
    p: Program, x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1,
    padding: Any = 0, output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
) -> Tensor:  # fmt: skip
    places = len(x.shape) - 2
    steps, spreads, pads = (each(given, places) for given in (stride, dilation, padding))
    kernel, more = weight.shape[2:], each(output_padding, places)
    counts = [
        (size - 1) * step - 2 * pad + (k - 1) * spread + (extra + 1)
        for size, step, pad, k, spread, extra in zip(
            x.shape[2:], steps, pads, kernel, spreads, more, strict=True
        )
    ]
    inner, each_group = x.shape[1] // groups, weight.shape[1]
    shape: Shape = (x.shape[0], each_group * groups, *counts, inner, *kernel)

    def channel(body: KernelBody, index: Index) -> str:
        at = index[2 + places]
        if groups == 1:
            return at
        text = f"{index[1]} / {body.macro(each_group)} * {body.macro(inner)} + {at}"
        return body.name("Index", text)

    def reached(body: KernelBody, index: Index) -> list[str]:
        """Return positions times the step."""
        of = zip(index[2:], index[3 + places :], spreads, pads, strict=False)
        return [body.name("Index", f"{at} + {pad} - {k} * {d}") for at, k, d, pad in of]

    def move(body: KernelBody, index: Index) -> Index:
        far = zip(reached(body, index), steps, strict=True)
        inside = [at if step == 1 else body.name("Index", f"{at} / {step}") for at, step in far]
        return (index[0], channel(body, index), *inside)

    def also(body: KernelBody, index: Index) -> list[str]:
        far = zip(reached(body, index), steps, strict=True)
        return [f"{at} >= 0 && {at} % {step} == 0" for at, step in far]

    def factor(body: KernelBody, index: Index) -> Index:
        own = index[1] if groups == 1 else f"({index[1]} % {body.macro(each_group)})"
        return (channel(body, index), own, *index[3 + places :])

    view = p.inside(x, shape, move, "0", also)
    whole = p.map("({0} * {1})", view, p.moved(p.at_hand(weight), shape, factor))
    return _with_bias(p, p.fold("sum", whole, 1 + places, is_shared=False), bias)


def _with_bias(p: Program, x: Tensor, bias: Tensor | None) -> Tensor:
    if bias is None:
        return x
    shape = (*bias.shape, *[p.one] * (len(x.shape) - 2))
    return p.map("({0} + {1})", x, p.view(bias, shape))


def _any_convolution(
    p: Program, x: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any,
    dilation: Any, transposed: bool, output_padding: Any, groups: int,
) -> Tensor:  # fmt: skip
    if transposed:
        return _transposed(p, x, weight, bias, stride, padding, output_padding, groups, dilation)
    return _convolution(p, x, weight, bias, stride, padding, dilation, groups)


PRODUCTS: Final[dict[str, Any]] = {
    **dict.fromkeys(("matmul", "mm", "bmm", "mv", "dot"), matmul),
    "linear": _linear,
    **dict.fromkeys(("addmm", "baddbmm"), _addmm),
    "einsum": _einsum,
    "scaled_dot_product_attention": _attention,
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), _convolution),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), _transposed),
    "convolution": _any_convolution,
}
