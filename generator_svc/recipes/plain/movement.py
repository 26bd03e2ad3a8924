"""Views, joins and gathers: elements that are where others were."""

from collections.abc import Sequence
from typing import Any, Final

from generator_svc.recipes.plain.elementwise import where
from generator_svc.recipes.plain.program import Program, literal, widest
from generator_svc.recipes.plain.reductions import squeezed
from generator_svc.recipes.plain.sizes import Shape, SymbolicSize, product
from generator_svc.recipes.plain.tensors import (
    NUMBER,
    TRUTH,
    Index,
    JoinedTensor,
    KernelBody,
    Tensor,
)
from generator_svc.recipes.unsupported import RecipeUnsupported

_MOST_PIECES: Final = 1024

_END: Final = 1 << 62
"""What PyTorch writes for the end of an open slice is above."""


def _view(p: Program, x: Tensor, shape: Sequence[Any], *_: Any) -> Tensor:
    """Return the elements in another shape; a size of the same place keeps its text."""
    asked = [p.size(size) for size in shape]
    old = list(x.shape)
    found: list[SymbolicSize] = []
    for place, size in enumerate(asked):
        from_front = place < len(old) and found == old[:place] and size.values == old[place].values
        found.append(old[place] if from_front else size)
    unknown = [place for place, size in enumerate(found) if size.values[0] == -1]
    if not unknown and found:
        # The last size that is not one of the tensor's own follows from the others.
        unknown = [place for place, size in enumerate(found) if size not in old][-1:]
    for place in unknown:
        others = product((s for i, s in enumerate(found) if i != place), p.one)
        rest = product(old, p.one) // others
        if found[place].values[0] == -1 or rest.values == found[place].values:
            found[place] = rest
    return p.view(x, tuple(found))


def _flatten(p: Program, x: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    rank = len(x.shape)
    start, end = start_dim % rank, end_dim % rank + 1
    joined = product(x.shape[start:end], p.one)
    return p.view(x, (*x.shape[:start], joined, *x.shape[end:]))


def _unflatten(p: Program, x: Tensor, dim: int, sizes: Sequence[Any]) -> Tensor:
    axis = dim % len(x.shape)
    parts = [p.size(size) for size in sizes]
    rest = x.shape[axis] // product((s for s in parts if s.values[0] != -1), p.one)
    parts = [rest if s.values[0] == -1 else s for s in parts]
    return p.view(x, (*x.shape[:axis], *parts, *x.shape[axis + 1 :]))


def _squeeze(p: Program, x: Tensor, dim: Any = None) -> Tensor:
    rank = len(x.shape)
    axes = range(rank) if dim is None else [dim] if isinstance(dim, int) else dim
    return squeezed(p, x, [axis % rank for axis in axes if x.shape[axis].is_one])


def _transpose(p: Program, x: Tensor, one: int, other: int) -> Tensor:
    order = list(range(len(x.shape)))
    order[one], order[other] = order[other], order[one]
    return p.permute(x, order)


def _reversed(p: Program, x: Tensor) -> Tensor:
    return p.permute(x, list(reversed(range(len(x.shape)))))


def _expand(p: Program, x: Tensor, shape: Sequence[Any], **_: Any) -> Tensor:
    ahead = len(shape) - len(x.shape)
    old = [p.one] * ahead + list(x.shape)
    sizes = [p.size(size) for size in shape]
    pairs = zip(sizes, old, strict=True)
    wanted = [own if s.values[0] == -1 or s.values == own.values else s for s, own in pairs]
    return p.expand(x, tuple(wanted))


def _bounded(p: Program, x: Tensor, axis: int, place: Any, default: SymbolicSize) -> SymbolicSize:
    """Return a slice's bound, counted from the start."""
    if place is None:
        return default
    size = p.size(place)
    if size.values[0] >= _END:
        return x.shape[axis]
    if size.values[0] < 0:
        size = x.shape[axis] + size
    pairs = zip(size.values, x.shape[axis].values, strict=True)
    return x.shape[axis] if all(at >= full for at, full in pairs) else size


def _slice(
    p: Program, x: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Tensor:
    axis = dim % len(x.shape)
    first = _bounded(p, x, axis, start, p.size(0))
    last = _bounded(p, x, axis, end, x.shape[axis])
    return p.cut(x, axis, first, (last - first).up_to(step), step)


def _narrow(p: Program, x: Tensor, dim: int, start: Any, length: Any) -> Tensor:
    first = p.size(start)
    return _slice(p, x, dim, first, first + p.size(length))


def _select(p: Program, x: Tensor, dim: int, index: Any) -> Tensor:
    axis = dim % len(x.shape)
    first = _bounded(p, x, axis, index, p.size(0))
    return squeezed(p, p.cut(x, axis, first, p.one), [axis])


def _pieces(p: Program, x: Tensor, axis: int, sizes: Sequence[Any]) -> tuple[Tensor, ...]:
    _check_count(len(sizes))
    start, found = p.size(0), []
    for size in sizes:
        count = p.size(size)
        found.append(p.cut(x, axis, start, count))
        start = start + count
    return tuple(found)


def _check_count(count: int) -> None:
    """Refuse more pieces than any kernel is written for: their offsets' texts add up."""
    if count > _MOST_PIECES:
        raise RecipeUnsupported(f"more than {_MOST_PIECES} pieces of a tensor")


def _split(p: Program, x: Tensor, size: Any, dim: int = 0) -> tuple[Tensor, ...]:
    x, axis = p.at_hand(x), dim % len(x.shape)
    if isinstance(size, list | tuple):
        return _pieces(p, x, axis, size)
    each, whole = p.size(size), x.shape[axis]
    counts = {-(-w // e) for w, e in zip(whole.values, each.values, strict=True)}
    if len(counts) > 1:
        raise RecipeUnsupported("a split whose count depends on the sizes")
    count = counts.pop()
    _check_count(count)
    return _pieces(p, x, axis, [*[each] * (count - 1), whole - each * (count - 1)])


def _chunk(p: Program, x: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    return _split(p, x, x.shape[dim].up_to(chunks), dim)


def _unbind(p: Program, x: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    x = p.at_hand(x)
    _check_count(x.shape[dim].values[0])
    return tuple(_select(p, x, dim, place) for place in range(x.shape[dim].values[0]))


def _cat(p: Program, tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    kind = widest(list(tensors))
    tensors = [p.cast(p.loop_free(t), kind) for t in tensors]
    axis = dim % len(tensors[0].shape)
    cases = []
    end = p.size(0)
    for tensor in tensors:
        start, end = end, end + tensor.shape[axis]
        shape = tensor.shape

        def move(body: KernelBody, index: Index, start: SymbolicSize = start) -> Index:
            at = index[axis] if start.text == "0" else f"({index[axis]} - {body.macro(start)})"
            return (*index[:axis], at, *index[axis + 1 :])

        def holds(body: KernelBody, index: Index, end: SymbolicSize = end) -> str:
            return f"{index[axis]} < {body.macro(end)}"

        cases.append((holds, p.moved(tensor, shape, move)))
    shape = (*tensors[0].shape[:axis], end, *tensors[0].shape[axis + 1 :])
    return JoinedTensor(shape=shape, kind=kind, cases=tuple(cases), other="0")


def _stack(p: Program, tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    return _cat(p, [p.unsqueeze(p.loop_free(t), dim) for t in tensors], dim)


def _mirrored(p: Program, x: Tensor, dims: Sequence[int]) -> Tensor:
    axes = {axis % len(x.shape) for axis in dims}

    def move(body: KernelBody, index: Index) -> Index:
        return tuple(
            f"({body.macro(x.shape[axis])} - 1 - {at})" if axis in axes else at
            for axis, at in enumerate(index)
        )

    return p.moved(x, x.shape, move)


def _roll(p: Program, x: Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> Tensor:
    by = {axis % len(x.shape): shift for axis, shift in zip(dims, shifts, strict=True)}

    def move(body: KernelBody, index: Index) -> Index:
        found = list(index)
        for axis, shift in by.items():
            size = body.macro(x.shape[axis])
            found[axis] = f"((({index[axis]} - {shift}) % {size} + {size}) % {size})"
        return tuple(found)

    return p.moved(p.loop_free(x), x.shape, move)


def _pad(
    p: Program, x: Tensor, pad: Sequence[int], mode: Any = "constant", value: Any = None
) -> Tensor:
    if isinstance(mode, int | float):
        mode, value = "constant", mode
    rank = len(x.shape)
    pads = {rank - 1 - n // 2: (pad[n], pad[n + 1]) for n in range(0, len(pad), 2)}
    shape = tuple(s + sum(pads.get(axis, ())) for axis, s in enumerate(x.shape))

    def shifted(index: Index) -> list[str]:
        return [
            f"({at} - {pads[axis][0]})" if axis in pads else at for axis, at in enumerate(index)
        ]

    if mode == "constant":
        fill = literal(float(value or 0)) if x.kind == NUMBER else literal(int(value or 0))
        return p.inside(x, shape, lambda b, i: tuple(shifted(i)), fill)
    if mode not in ("reflect", "replicate"):
        raise RecipeUnsupported(f"aten.pad of mode {mode}")

    def move(body: KernelBody, index: Index) -> Index:
        found = shifted(index)
        for axis in pads:
            at, last = body.name("Index", found[axis]), f"({body.macro(x.shape[axis])} - 1)"
            low, high = ("0", last) if mode == "replicate" else (f"-{at}", f"2 * {last} - {at}")
            found[axis] = body.name("Index", f"{at} < 0 ? {low} : {at} > {last} ? {high} : {at}")
        return tuple(found)

    return p.moved(p.at_hand(x), shape, move)


def _repeat(p: Program, x: Tensor, repeats: Sequence[int]) -> Tensor:
    ahead = max(len(repeats) - len(x.shape), 0)
    times = [1] * (len(x.shape) - len(repeats)) + list(repeats)
    old = [p.one] * ahead + list(x.shape)

    def move(body: KernelBody, index: Index) -> Index:
        pairs = zip(index[ahead:], x.shape, times[ahead:], strict=True)
        return tuple(at if n == 1 else f"({at} % {body.macro(s)})" for at, s, n in pairs)

    shape = tuple(size * n for size, n in zip(old, times, strict=True))
    return p.moved(p.loop_free(x), shape, move)


def _picked(p: Program, x: Tensor, places: Tensor, shape: Shape, move: Any) -> Tensor:
    """Return a view at positions that a tensor holds; `move` gets the index and the position."""
    places = p.at_hand(places)
    return p.moved(
        p.at_hand(x), shape, lambda b, i: move(i, lambda at: b.name("Index", b.read(places, at)))
    )


def _embedding(p: Program, weight: Tensor, indices: Tensor, *_: Any) -> Tensor:
    rank = len(indices.shape)
    shape = (*indices.shape, weight.shape[1])
    return _picked(p, weight, indices, shape, lambda i, at: (at(i[:rank]), i[-1]))


def _gather(p: Program, x: Tensor, dim: int, index: Tensor, **_: Any) -> Tensor:
    axis = dim % len(x.shape)
    return _picked(p, x, index, index.shape, lambda i, at: (*i[:axis], at(i), *i[axis + 1 :]))


def _index_select(p: Program, x: Tensor, dim: int, index: Tensor) -> Tensor:
    axis = dim % len(x.shape)
    shape = (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])
    return _picked(p, x, index, shape, lambda i, at: (*i[:axis], at((i[axis],)), *i[axis + 1 :]))


def _triangle(is_lower: bool) -> Any:
    def operator(p: Program, x: Tensor, diagonal: int = 0) -> Tensor:
        rank = len(x.shape)
        rows, columns = (p.positions(x.shape, axis) for axis in (rank - 2, rank - 1))
        sign = "<=" if is_lower else ">="
        kept = p.map(f"({{1}} {sign} {{0}} + {{2}})", rows, columns, diagonal, kind=TRUTH)
        return where(p, kept, x, p.cast(p.full((), 0), x.kind))

    return operator


def _diagonal_matrix(p: Program, x: Tensor, diagonal: int = 0) -> Tensor:
    if len(x.shape) != 1 or diagonal:
        raise RecipeUnsupported("aten.diag of a matrix")
    shape = (x.shape[0], x.shape[0])
    rows, columns = (p.positions(shape, axis) for axis in (0, 1))
    found = p.moved(p.loop_free(x), shape, lambda _, i: (i[1],))
    is_there = p.map("({0} == {1})", rows, columns, kind=TRUTH)
    return where(p, is_there, found, p.cast(p.full((), 0), x.kind))


def _nearest(places: int) -> Any:
    def operator(p: Program, x: Tensor, output_size: Any, factors: Any = None, *_: Any) -> Tensor:
        ahead = len(x.shape) - places
        if factors is not None and any(f != int(f) for f in factors):
            raise RecipeUnsupported("an interpolation by a broken factor")
        sizes = x.shape[ahead:]
        wanted = (
            [p.size(s) for s in output_size]
            if factors is None
            else [s * int(f) for s, f in zip(sizes, factors, strict=True)]
        )

        def move(body: KernelBody, index: Index) -> Index:
            of = zip(index[ahead:], sizes, wanted, strict=True)
            return (
                *index[:ahead],
                *(f"({at} * {body.macro(s)} / {body.macro(w)})" for at, s, w in of),
            )

        return p.moved(p.loop_free(x), (*x.shape[:ahead], *wanted), move)

    return operator


def _pixel_shuffle(p: Program, x: Tensor, factor: int) -> Tensor:
    *batch, channels, high, wide = x.shape
    f, rank = p.size(factor), len(batch)
    parts = p.view(x, (*batch, channels // (factor * factor), f, f, high, wide))
    order = [*range(rank), rank, rank + 3, rank + 1, rank + 4, rank + 2]
    return p.view(
        p.permute(parts, order), (*batch, channels // (factor * factor), high * f, wide * f)
    )


def _move_axis(p: Program, x: Tensor, source: Any, target: Any) -> Tensor:
    rank = len(x.shape)
    sources, targets = (
        [a % rank for a in ([given] if isinstance(given, int) else given)]
        for given in (source, target)
    )
    order = [axis for axis in range(rank) if axis not in sources]
    for place, axis in sorted(zip(targets, sources, strict=True)):
        order.insert(place, axis)
    return p.permute(x, order)


MOVEMENT: Final[dict[str, Any]] = {
    **dict.fromkeys(("view", "reshape", "_unsafe_view"), _view),
    "flatten": _flatten,
    "unflatten": _unflatten,
    "squeeze": _squeeze,
    "unsqueeze": lambda p, x, dim: p.unsqueeze(x, dim),
    "permute": lambda p, x, dims: p.permute(x, dims),
    **dict.fromkeys(("transpose", "swapaxes", "swapdims"), _transpose),
    **dict.fromkeys(("t", "numpy_T"), _reversed),
    **dict.fromkeys(("mT", "matrix_H"), lambda p, x: _transpose(p, x, -1, -2)),
    "movedim": _move_axis,
    **dict.fromkeys(("expand", "broadcast_to"), _expand),
    "expand_as": lambda p, x, other: p.expand(x, other.shape),
    "slice": _slice,
    "narrow": _narrow,
    "select": _select,
    **dict.fromkeys(("split", "split_with_sizes"), _split),
    "chunk": _chunk,
    "unbind": _unbind,
    **dict.fromkeys(("cat", "concat"), _cat),
    "stack": _stack,
    "flip": _mirrored,
    "roll": _roll,
    **dict.fromkeys(("pad", "constant_pad_nd"), _pad),
    **dict.fromkeys(("repeat", "tile"), _repeat),
    "embedding": _embedding,
    "gather": _gather,
    "index_select": _index_select,
    "tril": _triangle(is_lower=True),
    "triu": _triangle(is_lower=False),
    "diag": _diagonal_matrix,
    **{f"upsample_nearest{places}d": _nearest(places) for places in (1, 2, 3)},
    "pixel_shuffle": _pixel_shuffle,
}
