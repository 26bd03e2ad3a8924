"""Tensors that are computed where they are read: each says how it reads at an index.

Pointwise chains, views and paddings are no kernels of their own, but part of the expression of
whoever reads them. A tensor becomes memory when `Program.store` makes it so.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from generator_svc.recipes.plain.sizes import PlanNumber, Shape

Index = tuple[str, ...]
"""C++ text of the position along each dimension."""

NUMBER, WHOLE, TRUTH = "float", "int64_t", "bool"
"""C++ types that elements are computed in: of floating point, whole numbers and truth."""


class KernelBody(Protocol):
    """The text of a kernel while it is written; what tensors need of it."""

    @property
    def prefix(self) -> str:
        """What stands before the name of a mathematical function."""
        ...

    def load(self, stored: "StoredTensor", index: Index) -> str:
        """Return the element of memory."""
        ...

    def name(self, kind: str, text: str) -> str:
        """Compute `text` once; return the name of its value."""
        ...

    def choose(self, kind: str, cases: list[tuple[str, Callable[[], str]]], other: str) -> str:
        """Return the value of the first case whose condition holds, else `other`."""
        ...

    def reduce(self, reduced: "ReducedTensor", index: Index) -> str:
        """Loop over what is reduced; return the name of the result."""
        ...

    def macro(self, size: PlanNumber) -> str:
        """Return the name in the device code of a size, or of what follows from one."""
        ...

    def flat(self, index: Index, shape: Shape) -> str:
        """Return the position in memory of an index."""
        ...

    def unflat(self, flat: str, shape: Shape) -> Index:
        """Return the index of a position in memory."""
        ...

    def read(self, tensor: "Tensor", index: Index) -> str:
        """Return the element of any tensor, computed once for each index."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class Tensor:
    """A tensor, stored or not; the same object is the same computation."""

    shape: Shape
    kind: str
    """C++ type of its elements when they are computed."""

    @property
    def operands(self) -> tuple["Tensor", ...]:
        """Tensors that are read for it."""
        return ()

    @cached_property
    def cost(self) -> int:
        """Operations for an element, loads among them; 1 of what is stored."""
        return 1 + sum(operand.cost for operand in self.operands)

    @cached_property
    def reduces(self) -> bool:
        """Whether an element takes a loop."""
        return any(operand.reduces for operand in self.operands)

    def at(self, body: KernelBody, index: Index) -> str:
        """Return C++ of the element at an index."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredTensor(Tensor):
    """Memory: a named tensor, or scratch."""

    name: str
    dtype: str

    def at(self, body: KernelBody, index: Index) -> str:
        """See `Tensor.at`."""
        return body.load(self, index)


@dataclass(frozen=True, kw_only=True, eq=False)
class FilledTensor(Tensor):
    """The same number everywhere."""

    text: str

    def at(self, body: KernelBody, index: Index) -> str:
        """See `Tensor.at`."""
        return self.text


@dataclass(frozen=True, kw_only=True, eq=False)
class SizeTensor(Tensor):
    """A size as a number, or a number that follows from one."""

    size: PlanNumber

    def at(self, body: KernelBody, index: Index) -> str:
        """See `Tensor.at`."""
        return f"({self.kind}){body.macro(self.size)}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Position(Tensor):
    """Each element is its own position along one axis."""

    axis: int

    def at(self, body: KernelBody, index: Index) -> str:
        """See `Tensor.at`."""
        return f"(int64_t)({index[self.axis]})"


@dataclass(frozen=True, kw_only=True, eq=False)
class MappedTensor(Tensor):
    """An operation on each element of operands that broadcast."""

    template: str
    """C++ with {0}, {1}, … for the operands and {m} before the name of a function."""
    of: tuple[Tensor, ...]

    @property
    def operands(self) -> tuple[Tensor, ...]:
        """See `Tensor.operands`."""
        return self.of

    def at(self, body: KernelBody, index: Index) -> str:
        """See `Tensor.at`."""
        texts = [body.read(operand, self._index_of(operand, index)) for operand in self.of]
        return body.name(self.kind, self.template.format(*texts, m=body.prefix))

    def _index_of(self, operand: Tensor, index: Index) -> Index:
        own = self.shape[len(self.shape) - len(operand.shape) :]
        last = index[len(index) - len(own) :]
        pairs = zip(operand.shape, own, last, strict=True)
        return tuple("0" if size.values != full.values else at for size, full, at in pairs)


@dataclass(frozen=True, kw_only=True, eq=False)
class ViewedTensor(Tensor):
    """Another tensor's elements elsewhere."""

    of: Tensor
    move: Callable[[KernelBody, Index], Index]
    """From an index of the view to one of the tensor."""
    order: tuple[int, ...] = ()
    """The tensor's dimensions in the view, where it does nothing else; empty: it does."""

    @property
    def operands(self) -> tuple[Tensor, ...]:
        """See `Tensor.operands`."""
        return (self.of,)

    @cached_property
    def cost(self) -> int:
        """See `Tensor.cost`."""
        return self.of.cost

    def at(self, body: KernelBody, index: Index) -> str:
        """See `Tensor.at`."""
        return body.read(self.of, self.move(body, index))


@dataclass(frozen=True, kw_only=True, eq=False)
class JoinedTensor(Tensor):
    """One of several tensors, by conditions on the index; a number where none holds."""

    cases: tuple[tuple[Callable[[KernelBody, Index], str], Tensor], ...]
    """Condition, and what is read at the same index when it is the first that holds."""
    other: str

    @property
    def operands(self) -> tuple[Tensor, ...]:
        """See `Tensor.operands`."""
        return tuple(tensor for _, tensor in self.cases)

    def at(self, body: KernelBody, index: Index) -> str:
        """See `Tensor.at`."""

        def reader(tensor: Tensor) -> Callable[[], str]:
            return lambda: body.read(tensor, index)

        cases = [(holds(body, index), reader(tensor)) for holds, tensor in self.cases]
        return body.choose(self.kind, cases, self.other)


@dataclass(frozen=True, kw_only=True, eq=False)
class ReducedTensor(Tensor):
    """A reduction over the last dimensions of another tensor."""

    of: Tensor
    """Of the shape of this one, then of the dimensions that are reduced."""
    how: str
    """"sum", "product", "max" or "min"."""
    is_shared: bool
    """Whether the threads of a block suit one element: its loop runs over neighbours."""

    @property
    def operands(self) -> tuple[Tensor, ...]:
        """See `Tensor.operands`."""
        return (self.of,)

    @cached_property
    def reduces(self) -> bool:
        """See `Tensor.reduces`."""
        return True

    @property
    def loops(self) -> Shape:
        """What is reduced."""
        return self.of.shape[len(self.shape) :]

    def at(self, body: KernelBody, index: Index) -> str:
        """See `Tensor.at`."""
        return body.reduce(self, index)


@dataclass(frozen=True, kw_only=True, eq=False)
class ScannedTensor(Tensor):
    """Running sums or products along one axis; always stored."""

    of: Tensor
    axis: int
    how: str

    @property
    def operands(self) -> tuple[Tensor, ...]:
        """See `Tensor.operands`."""
        return (self.of,)


def reductions(tensor: Tensor) -> Iterator[ReducedTensor]:
    """Yield what a kernel of `tensor` loops over."""
    if isinstance(tensor, ReducedTensor):
        yield tensor
        return
    for operand in tensor.operands:
        yield from reductions(operand)
