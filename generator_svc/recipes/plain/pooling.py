"""Pooling: extrema and means under windows."""

from collections.abc import Sequence
from typing import Any, Final

from generator_svc.recipes.plain.products import each, window, window_count
from generator_svc.recipes.plain.program import Program
from generator_svc.recipes.plain.sizes import SymbolicSize, fixed, product
from generator_svc.recipes.plain.tensors import NUMBER, Index, KernelBody, Tensor
from generator_svc.recipes.unsupported import RecipeUnsupported


def _windows(
    p: Program, x: Tensor, counts: Sequence[SymbolicSize], kernel: Sequence[int],
    steps: Sequence[int], pads: Sequence[int], spreads: Sequence[int], outside: str,
) -> Tensor:  # fmt: skip
    """Return what is under each window, of shape `(…, *counts, *kernel)`."""
    ahead = len(x.shape) - len(counts)
    shape = (*x.shape[:ahead], *counts, *(p.size(k) for k in kernel))

    def move(body: KernelBody, index: Index) -> Index:
        offsets = index[ahead + len(counts) :]
        at = zip(index[ahead:], steps, offsets, spreads, pads, strict=False)
        return (*index[:ahead], *(body.name("Index", window(*of)) for of in at))

    return p.inside(x, shape, move, outside)


def _counts(
    x: Tensor, kernel: Sequence[int], steps: Sequence[int], pads: Sequence[int],
    spreads: Sequence[int], ceil_mode: bool,
) -> list[SymbolicSize]:  # fmt: skip
    found = []
    sizes = x.shape[len(x.shape) - len(kernel) :]
    for size, k, step, pad, spread in zip(sizes, kernel, steps, pads, spreads, strict=True):
        more = step - 1 if ceil_mode else 0
        span = fixed(k, len(size.values))
        count = window_count(size, span, step, spread, 2 * pad + more)
        # The last window has to start inside of the tensor or of what is padded before it.
        starts = zip(count.values, size.values, strict=True)
        is_beyond = {(number - 1) * step >= length + pad for number, length in starts}
        if ceil_mode and len(is_beyond) > 1:
            raise RecipeUnsupported("pooling whose last window depends on the sizes")
        found.append(count - 1 if ceil_mode and True in is_beyond else count)
    return found


def _max_pool(places: int, with_indices: bool = False) -> Any:
    def operator(
        p: Program, x: Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0,
        dilation: Any = 1, ceil_mode: bool = False,
    ) -> Any:  # fmt: skip
        kernel = each(kernel_size, places)
        steps = each(stride or kernel, places)
        pads, spreads = each(padding, places), each(dilation, places)
        counts = _counts(x, kernel, steps, pads, spreads, ceil_mode)
        under = _windows(p, x, counts, kernel, steps, pads, spreads, "-INFINITY")
        found = p.fold("max", under, places, is_shared=False)
        return (found, None) if with_indices else found

    return operator


def _avg_pool(places: int) -> Any:
    def operator(
        p: Program, x: Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0,
        ceil_mode: bool = False, count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Tensor:  # fmt: skip
        kernel = each(kernel_size, places)
        steps, pads = each(stride or kernel, places), each(padding, places)
        spreads = [1] * places
        if any(pads) and ceil_mode and count_include_pad:
            raise RecipeUnsupported("average pooling with padding and ceil_mode")
        counts = _counts(x, kernel, steps, pads, spreads, ceil_mode)

        def total(tensor: Tensor) -> Tensor:
            under = _windows(p, tensor, counts, kernel, steps, pads, spreads, "0")
            return p.fold("sum", under, places, is_shared=False)

        divisor: Any = divisor_override or product((p.size(k) for k in kernel), p.one).values[0]
        if not divisor_override and (ceil_mode or (any(pads) and not count_include_pad)):
            divisor = p.store(total(p.full(x.shape, 1.0)))
        elif not isinstance(divisor, Tensor):
            divisor = float(divisor)
        return p.map("({0} / {1})", total(x), divisor)

    return operator


def _adaptive_pool(places: int, how: str) -> Any:
    def operator(p: Program, x: Tensor, output_size: Any) -> Any:
        ahead = len(x.shape) - places
        sizes = x.shape[ahead:]
        asked = zip(each(output_size, places), sizes, strict=True)
        counts = [size if number is None else p.size(number) for number, size in asked]
        pairs = list(zip(sizes, counts, strict=True))
        is_even = all(
            s % c == 0 for size, count in pairs
            for s, c in zip(size.values, count.values, strict=True)
        )  # fmt: skip
        spans = [size // count if is_even else size.up_to(count) + 1 for size, count in pairs]
        shape = (*x.shape[:ahead], *counts, *spans)

        def bound(body: KernelBody, at: str, pair: tuple[SymbolicSize, SymbolicSize]) -> str:
            size, count = (body.macro(s) for s in pair)
            return f"({at} * {size} / {count})"

        def move(body: KernelBody, index: Index) -> Index:
            of = zip(index[ahead:], pairs, index[ahead + places :], strict=False)
            starts = [body.name("Index", f"{bound(body, at, pair)} + {k}") for at, pair, k in of]
            return (*index[:ahead], *starts)

        def also(body: KernelBody, index: Index) -> list[str]:
            of = zip(index[ahead:], pairs, move(body, index)[ahead:], strict=False)
            return [
                f"{place} < (({at} + 1) * {body.macro(pair[0])} + {body.macro(pair[1])} - 1)"
                f" / {body.macro(pair[1])}"
                for at, pair, place in of
            ]

        def under(tensor: Tensor, outside: str) -> Tensor:
            if is_even:
                return p.moved(p.at_hand(tensor), shape, move)
            return p.inside(tensor, shape, move, outside, also)

        if how == "max":
            return p.fold("max", under(x, "-INFINITY"), places, is_shared=False), None
        is_shared = min(product(spans, p.one).values) >= 64  # as in a mean over all places
        total = p.fold("sum", under(x, "0"), places, is_shared=is_shared)
        if is_even:
            return p.map("({0} / {1})", total, p.cast(p.number(product(spans, p.one)), NUMBER))
        ones = p.fold("sum", under(p.full(x.shape, 1.0), "0"), places, is_shared=False)
        return p.map("({0} / {1})", total, p.store(ones))

    return operator


POOLING: Final[dict[str, Any]] = {
    f"{name}{places}d{suffix}": operator
    for places in (1, 2, 3)
    for name, suffix, operator in (
        ("max_pool", "", _max_pool(places)),
        ("max_pool", "_with_indices", _max_pool(places, with_indices=True)),
        ("avg_pool", "", _avg_pool(places)),
        ("adaptive_avg_pool", "", _adaptive_pool(places, "mean")),
        ("adaptive_max_pool", "", _adaptive_pool(places, "max")),
    )
}
