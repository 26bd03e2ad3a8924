"""Builds tensors from tensors, and says which of them become memory, each by one kernel.

Operators of PyTorch are read by `translation`, kernels written by `kernel_text`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from generator_svc.recipes.plain.kernel_text import NEUTRAL
from generator_svc.recipes.plain.languages import KINDS
from generator_svc.recipes.plain.sizes import (
    PlanNumber,
    Shape,
    SizeNumber,
    SymbolicSize,
    fixed,
    product,
    same,
)
from generator_svc.recipes.plain.tensors import (
    NUMBER,
    TRUTH,
    WHOLE,
    FilledTensor,
    Index,
    JoinedTensor,
    KernelBody,
    MappedTensor,
    Position,
    ReducedTensor,
    ScannedTensor,
    SizeTensor,
    StoredTensor,
    Tensor,
    ViewedTensor,
)
from generator_svc.recipes.unsupported import RecipeUnsupported

SCRATCH = "tmp_"
"""What names of scratch begin with."""

_SCRATCH = {NUMBER: "float32", WHOLE: "int64", TRUTH: "bool"}
"""Scratch is wider than what it may come from: rounding in between is nobody's wish."""

_MOST_COST = 32
"""Operations of an element beyond which it is stored: kernels stay short, nothing explodes."""

_FEW_ELEMENTS, _LONG_REDUCTION, _PARTS = 2048, 1 << 16, 512
"""So long a reduction to so few elements is done in parts: each is an element of its own."""

_RANKS = {TRUTH: 0, WHOLE: 1, NUMBER: 2}


LibraryValue = StoredTensor | int | float | str | tuple[int, ...] | None


@dataclass(frozen=True, kw_only=True)
class KernelStep:
    """One kernel: what it computes, and where to."""

    root: Tensor
    target: StoredTensor


@dataclass(frozen=True, kw_only=True, eq=False)
class LibraryStep:
    """One library call: its name in plans, what it is given by parameter, and its result."""

    name: str
    given: tuple[tuple[str, LibraryValue], ...]
    target: StoredTensor
    output: str = ""
    """Where the result goes, in place of scratch."""

    @property
    def tensors(self) -> tuple[StoredTensor, ...]:
        """What it reads."""
        return tuple(value for _, value in self.given if isinstance(value, StoredTensor))


Step = KernelStep | LibraryStep

Operand = Tensor | SymbolicSize | int | float | bool


class Program:
    """The steps so far, and tensors made of what they store.

    Args:
        workloads: How many there are.
        is_fused: Whether chains of operations on elements are one kernel.
    """

    def __init__(self, workloads: int, *, is_fused: bool) -> None:
        self.one = fixed(1, workloads)
        self.steps: list[Step] = []
        self._workloads = workloads
        self._is_fused = is_fused
        self._operands: dict[tuple[Tensor, str], StoredTensor] = {}

    def size(self, number: SymbolicSize | int) -> SymbolicSize:
        """Return a number of the reference's text as a size."""
        return number if isinstance(number, SymbolicSize) else fixed(number, self._workloads)

    def named(self, name: str, dtype: str, shape: Shape) -> StoredTensor:
        """Return a tensor of the name table."""
        if dtype not in KINDS:
            raise RecipeUnsupported(f"{dtype}, of {name}")
        return StoredTensor(shape=shape, kind=KINDS[dtype], name=name, dtype=dtype)

    def store(self, tensor: Tensor, target: StoredTensor | None = None) -> StoredTensor:
        """Return `tensor` as memory, computed by a kernel of its own unless it is there already."""
        if isinstance(tensor, StoredTensor) and target is None:
            return tensor
        if target is None:
            target = self._scratch(tensor.shape, tensor.kind, _SCRATCH[tensor.kind])
        self.steps.append(KernelStep(root=self.cast(tensor, target.kind), target=target))
        return target

    def operand(self, tensor: Tensor, dtype: str) -> StoredTensor:
        """Return `tensor` as memory of a data type, which a library call can read."""
        if isinstance(tensor, StoredTensor) and tensor.dtype == dtype:
            return tensor
        known = self._operands.get((tensor, dtype))
        if known is None:
            target = self._scratch(tensor.shape, KINDS[dtype], dtype)
            known = self._operands[tensor, dtype] = self.store(tensor, target)
        return known

    def call(
        self, name: str, given: Mapping[str, LibraryValue], shape: Shape, dtype: str
    ) -> StoredTensor:
        """Return the result of a library call."""
        target = self._scratch(shape, NUMBER, dtype)
        self.steps.append(LibraryStep(name=name, given=tuple(given.items()), target=target))
        return target

    def put(self, tensor: Tensor, target: StoredTensor) -> None:
        """Compute `tensor` into an output: by the library where it is the result of a call."""
        for place, step in enumerate(self.steps):
            if (
                isinstance(step, LibraryStep)
                and step.target is tensor
                and not step.output
                and step.target.dtype == target.dtype
            ):
                self.steps[place] = replace(step, output=target.name)
                return
        self.store(tensor, target)

    def settle(self, tensor: Tensor, users: int) -> Tensor:
        """Return a node's result as its users should read it: computed by each, or once for all."""
        is_dear = tensor.cost > _MOST_COST or (users > 1 and tensor.reduces)
        if (
            is_dear
            or isinstance(tensor, ScannedTensor)
            or (not self._is_fused and not _is_view(tensor))
        ):
            return self.store(tensor)
        return tensor

    def at_hand(self, tensor: Tensor) -> Tensor:
        """Return a tensor that may be read many times: memory, or a view of it."""
        return tensor if _is_view(tensor) else self.store(tensor)

    def loop_free(self, tensor: Tensor) -> Tensor:
        """Return a tensor whose elements take no loop."""
        return self.store(tensor) if tensor.reduces else tensor

    def cast(self, tensor: Tensor, kind: str) -> Tensor:
        """Return the tensor's elements as another kind."""
        if tensor.kind == kind:
            return tensor
        template = "({0} != 0)" if kind == TRUTH else f"({kind})({{0}})"
        return MappedTensor(shape=tensor.shape, kind=kind, template=template, of=(tensor,))

    def tensor(self, operand: Operand) -> Tensor:
        """Return an operand as a tensor."""
        return operand if isinstance(operand, Tensor) else self.full((), operand)

    def full(self, shape: Shape, number: Operand) -> Tensor:
        """Return a tensor of one number."""
        if isinstance(number, SymbolicSize):
            number = self.number(number)
        if isinstance(number, Tensor):
            return self.expand(number, shape)
        kind = TRUTH if isinstance(number, bool) else WHOLE if isinstance(number, int) else NUMBER
        return FilledTensor(shape=shape, kind=kind, text=literal(number))

    def number(self, size: PlanNumber) -> Tensor:
        """Return a size, or a number from one, as a tensor without dimensions."""
        kind = NUMBER if isinstance(size, SizeNumber) else WHOLE
        return SizeTensor(shape=(), kind=kind, size=size)

    def positions(self, shape: Shape, axis: int) -> Tensor:
        """Return a tensor whose elements are their positions along an axis."""
        return Position(shape=shape, kind=WHOLE, axis=axis)

    def map(self, template: str, *operands: Operand, kind: str = "") -> Tensor:
        """Return an operation on each element of operands that broadcast.

        Args:
            template: C++ with {0}, {1}, … and {m} before the name of a function.
            operands: Tensors and numbers; without `kind` all become the widest of their kinds.
            kind: Of the result; empty: that of the operands.
        """
        tensors = [self.tensor(operand) for operand in operands]
        wide = widest(tensors)
        if not kind:
            tensors = [self.cast(t, wide) for t in tensors]
        shape = broadcast([t.shape for t in tensors])
        ready: list[Tensor] = []
        for tensor in tensors:
            # One loop in a kernel, and each of its results computed once.
            is_free = same(tensor.shape, shape) and not any(t.reduces for t in ready)
            ready.append(tensor if is_free else self.loop_free(tensor))
        return MappedTensor(shape=shape, kind=kind or wide, template=template, of=tuple(ready))

    def _scratch(self, shape: Shape, kind: str, dtype: str) -> StoredTensor:
        name = f"{SCRATCH}{len(self.steps)}"
        return StoredTensor(shape=shape, kind=kind, name=name, dtype=dtype)

    def moved(
        self, tensor: Tensor, shape: Shape, move: Callable[[KernelBody, Index], Index]
    ) -> Tensor:
        """Return a view: `move` gives the tensor's index for one of the view."""
        return ViewedTensor(shape=shape, kind=tensor.kind, of=tensor, move=move)

    def expand(self, tensor: Tensor, shape: Shape) -> Tensor:
        """Return the tensor broadcast to a shape."""
        if same(tensor.shape, shape):
            return tensor
        ahead = len(shape) - len(tensor.shape)
        stays = [a.values == b.values for a, b in zip(tensor.shape, shape[ahead:], strict=True)]

        def move(_: KernelBody, index: Index) -> Index:
            pairs = zip(index[ahead:], stays, strict=True)
            return tuple(at if is_same else "0" for at, is_same in pairs)

        return self.moved(self.loop_free(tensor), shape, move)

    def permute(self, tensor: Tensor, order: Sequence[int]) -> Tensor:
        """Return the tensor with its dimensions in another order."""
        order = [place % len(order) for place in order]
        shape = tuple(tensor.shape[place] for place in order)
        back = [order.index(place) for place in range(len(order))]
        return ViewedTensor(
            shape=shape,
            kind=tensor.kind,
            of=tensor,
            move=lambda _, index: tuple(index[place] for place in back),
            order=tuple(order),
        )

    def view(self, tensor: Tensor, shape: Shape) -> Tensor:
        """Return the tensor's elements in their order, in another shape."""
        if same(tensor.shape, shape):
            return tensor
        before = tensor.shape
        return self.moved(tensor, shape, lambda b, index: b.unflat(b.flat(index, shape), before))

    def unsqueeze(self, tensor: Tensor, place: int) -> Tensor:
        """Return the tensor with a dimension of 1 more."""
        place %= len(tensor.shape) + 1
        shape = (*tensor.shape[:place], self.one, *tensor.shape[place:])
        return self.moved(tensor, shape, lambda _, i: (*i[:place], *i[place + 1 :]))

    def cut(
        self, tensor: Tensor, axis: int, start: SymbolicSize, count: SymbolicSize, step: int = 1
    ) -> Tensor:
        """Return every `step`-th position of an axis, `count` of them from `start` on."""
        shape = (*tensor.shape[:axis], count, *tensor.shape[axis + 1 :])

        def move(body: KernelBody, index: Index) -> Index:
            at = index[axis] if step == 1 else f"({index[axis]} * {step})"
            at = at if start.text == "0" else f"({at} + {body.macro(start)})"
            return (*index[:axis], at, *index[axis + 1 :])

        return self.moved(tensor, shape, move)

    def inside(
        self,
        tensor: Tensor,
        shape: Shape,
        move: Callable[[KernelBody, Index], Index],
        other: str,
        also: Callable[[KernelBody, Index], list[str]] | None = None,
    ) -> Tensor:
        """Return a view that may point outside of the tensor, where `other` stands.

        Args:
            tensor: What is read.
            shape: Of the view.
            move: Gives the tensor's index. What is not the view's own is compared with 0 and the
                size, and must stand in brackets or be a name.
            other: C++ of what is read outside.
            also: Further conditions.
        """
        tensor = self.at_hand(tensor)

        def holds(body: KernelBody, index: Index) -> str:
            checks = [] if also is None else also(body, index)
            for at, size in zip(move(body, index), tensor.shape, strict=True):
                if at not in index and at != "0":  # computed, so that it may be anything
                    checks.append(f"{at} >= 0 && {at} < {body.macro(size)}")
            return " && ".join(checks) or "true"

        inner = self.moved(tensor, shape, move)
        return JoinedTensor(shape=shape, kind=tensor.kind, cases=((holds, inner),), other=other)

    def reduce(
        self, how: str, tensor: Tensor, axes: Sequence[int], *, keeps: bool = False
    ) -> Tensor:
        """Return the reduction over `axes`, with dimensions of 1 for them where it `keeps` them."""
        rank = len(tensor.shape)
        over = sorted({axis % rank for axis in axes}) if rank else []
        if not over:
            return tensor
        rest = [place for place in range(rank) if place not in over]
        turned = self.permute(self.loop_free(tensor), [*rest, *over])
        found = self.fold(how, turned, len(over), is_shared=over[-1] == rank - 1)
        if keeps:
            shape = tuple(self.one if p in over else s for p, s in enumerate(tensor.shape))
            found = self.view(found, shape)
        return found

    def fold(self, how: str, tensor: Tensor, dimensions: int, *, is_shared: bool) -> Tensor:
        """Return the reduction over the last dimensions; see `ReducedTensor`."""
        kept = tensor.shape[: len(tensor.shape) - dimensions]
        count = product(tensor.shape[len(kept) :], self.one)
        elements = product(kept, self.one)
        if max(elements.values) < _FEW_ELEMENTS and max(count.values) >= _LONG_REDUCTION:
            tensor = self.store(self._in_parts(how, tensor, kept, count))
            is_shared = True
        return ReducedTensor(shape=kept, kind=tensor.kind, of=tensor, how=how, is_shared=is_shared)

    def _in_parts(self, how: str, tensor: Tensor, kept: Shape, count: SymbolicSize) -> Tensor:
        """Return the reductions of `_PARTS` parts, of shape `(*kept, _PARTS)`."""
        parts = self.size(_PARTS)
        length = count.up_to(_PARTS)
        loops = tensor.shape[len(kept) :]

        def place(body: KernelBody, index: Index) -> str:
            return body.name("Index", f"{index[-2]} * {body.macro(length)} + {index[-1]}")

        def move(body: KernelBody, index: Index) -> Index:
            return (*index[:-2], *body.unflat(place(body, index), loops))

        def holds(body: KernelBody, index: Index) -> str:
            return f"{place(body, index)} < {body.macro(count)}"

        shape = (*kept, parts, length)
        neutral = NEUTRAL[how, tensor.kind == NUMBER]
        view = self.moved(tensor, shape, move)
        whole = JoinedTensor(shape=shape, kind=tensor.kind, cases=((holds, view),), other=neutral)
        return ReducedTensor(shape=shape[:-1], kind=tensor.kind, of=whole, how=how, is_shared=True)

    def scan(self, how: str, tensor: Tensor, axis: int) -> Tensor:
        """Return running sums or products along an axis."""
        tensor = self.loop_free(tensor)
        return ScannedTensor(shape=tensor.shape, kind=tensor.kind, of=tensor, axis=axis, how=how)


def widest(tensors: Sequence[Tensor]) -> str:
    """Return the kind that holds the elements of all `tensors`."""
    return max((tensor.kind for tensor in tensors), key=_RANKS.__getitem__)


def literal(number: float) -> str:
    """Return C++ of a number."""
    if isinstance(number, bool):
        return "true" if number else "false"
    if isinstance(number, int):
        return str(number) if number >= 0 else f"({number})"
    if math.isnan(number):
        return "NAN"
    if math.isinf(number):
        return "INFINITY" if number > 0 else "(-INFINITY)"
    return f"{number!r}f" if number >= 0 else f"({number!r}f)"


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """Return the shape that all of `shapes` broadcast to."""
    rank = max(len(shape) for shape in shapes)
    found = []
    for place in range(-rank, 0):
        sizes = [shape[place] for shape in shapes if len(shape) >= -place]
        found.append(max(sizes, key=lambda size: size.values))
    return tuple(found)


def _is_view(tensor: Tensor) -> bool:
    while isinstance(tensor, ViewedTensor):
        tensor = tensor.of
    return isinstance(tensor, StoredTensor | FilledTensor | Position)
