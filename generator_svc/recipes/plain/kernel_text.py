"""Writes one kernel: a loop over the elements of a tensor, with all it takes to compute one."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from generator_svc.recipes.plain.languages import KernelFrame
from generator_svc.recipes.plain.sizes import PlanNumber, Shape, SymbolicSize, count_of
from generator_svc.recipes.plain.tensors import (
    NUMBER,
    Index,
    ReducedTensor,
    ScannedTensor,
    StoredTensor,
    Tensor,
    reductions,
)

_COMBINED = {
    "sum": "{0} + {1}",
    "product": "{0} * {1}",
    # What is not a number stays, as in PyTorch.
    "max": "({1} > {0} || {1} != {1}) ? {1} : {0}",
    "min": "({1} < {0} || {1} != {1}) ? {1} : {0}",
}

NEUTRAL = {
    ("sum", True): "0.0f",
    ("product", True): "1.0f",
    ("max", True): "-INFINITY",
    ("min", True): "INFINITY",
    ("sum", False): "0",
    ("product", False): "1",
    ("max", False): "(-9223372036854775807LL - 1)",
    ("min", False): "9223372036854775807LL",
}
"""Neutral element of each reduction, of floating point or not."""

_CHUNK = 64
"""Terms of a sum that are added before they join the whole: rounding errors grow with each half."""

_NAME = re.compile(r"-?[\w.]+")

_POSITION = re.compile(r" *const Index (v\d+) = ")


@dataclass(frozen=True, kw_only=True)
class KernelText:
    """A kernel without its name, so that two that do the same are one."""

    head: str
    body: str
    tensors: tuple[StoredTensor, ...]
    """What it reads, in order of its parameters; what it writes comes behind."""
    shares: str
    """C++ type of the elements that a block computes together; empty: each thread has its own."""

    def with_name(self, name: str) -> str:
        """Return the device code."""
        return self.head.replace("{name}", name) + self.body


@dataclass
class _Scope:
    reads: dict[tuple[int, Index], str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    flats: dict[tuple[Index, tuple[str, ...]], str] = field(default_factory=dict)

    def inner(self) -> "_Scope":
        return _Scope(dict(self.reads), dict(self.names), dict(self.flats))


class KernelWriter:
    """The text of a kernel while it is written; used once. A `tensors.Body`.

    Args:
        frame: Of the language.
        macro: Names a size in the device code.
        is_shared: Whether the threads of a block share each element.
    """

    def __init__(
        self, frame: KernelFrame, macro: Callable[[PlanNumber], str], *, is_shared: bool
    ) -> None:
        self._frame = frame
        self.macro = macro
        self.prefix = frame.prefix
        self._is_shared = is_shared
        self._lines: list[str] = []
        self._depth = 1
        self._count = 0
        self._scope = _Scope()
        self._parameters: dict[StoredTensor, str] = {}
        self._kept: list[Tensor] = []
        self._shares = ""
        self._values: dict[StoredTensor, str] = {}
        self._row: tuple[SymbolicSize, SymbolicSize] | None = None
        self._element = ""
        self._is_by_row = True

    def write(self, root: Tensor, target: StoredTensor) -> KernelText:
        """Return the kernel that computes `root` into `target`."""
        if isinstance(root, ScannedTensor):
            self._scan(root, target)
        else:
            with self._each_of(root.shape) as index:
                self._put(target, index, self.read(root, index))
        return self._text(target)

    def _text(self, target: StoredTensor) -> KernelText:
        _drop_unused(self._lines)
        shares = self._shares if self._is_shared else ""
        frame = self._frame
        begin = frame.shared.format(kind=shares) if shares else frame.each
        parameters = [
            f"const {self._type(tensor)}* __restrict__ {name}"
            for tensor, name in self._parameters.items()
        ]
        parameters.append(f"{self._type(target)}* __restrict__ to")
        if shares and frame.block_parameter:
            parameters.append(frame.block_parameter.format(kind=shares))
        return KernelText(
            head=frame.head.format(name="{name}", parameters=", ".join(parameters)),
            body="\n".join([f"  {begin}", *self._lines, "}"]) + "\n",
            tensors=tuple(self._parameters),
            shares=shares,
        )

    def write_rows(
        self, reduced: Sequence[tuple[Tensor, StoredTensor]], root: Tensor, target: StoredTensor
    ) -> KernelText | None:
        """Return the kernel whose blocks reduce a row and then compute its elements.

        Args:
            reduced: Roots with one value a row and what they would be stored as, in order.
            root: Of as many elements as all rows have; it reads those values of its own row.
            target: What it is stored to.

        Returns:
            None where a row's value is read from another row.
        """
        (first, _), *_ = reduced
        loops = next(reductions(first)).loops
        self._row = (count_of(first.shape), count_of(loops))
        rows, length = (self.macro(size) for size in self._row)
        with self._block(f"for (Index at = first; at < {rows}; at += stride)"):
            for value, stored in reduced:
                index = self._named("at", value.shape)
                self._values[stored] = self.read(value, index)
            with self._block(f"for (Index along = lane; along < {length}; along += BLOCK)"):
                self._element = self.name("Index", f"at * {length} + along")
                element = self.read(root, self._named(self._element, root.shape))
                narrowed = self._narrowed(target, element)
                self._line(f"to[{self._element}] = {narrowed};")
        return self._text(target) if self._is_by_row else None

    def load(self, stored: StoredTensor, index: Index) -> str:
        """See `tensors.Body.load`."""
        if stored in self._values:
            self._is_by_row = self._is_by_row and self.flat(index, stored.shape) == "at"
            return self._values[stored]
        name = self._parameters.setdefault(stored, f"a{len(self._parameters)}")
        element = f"{name}[{self.flat(index, stored.shape)}]"
        widened = self._frame.widening.get(stored.dtype, f"({stored.kind})" + "{0}")
        return self.name(stored.kind, widened.format(element))

    def name(self, kind: str, text: str) -> str:
        """See `tensors.Body.name`."""
        if _NAME.fullmatch(text):
            return text
        known = self._scope.names.get(text)
        if known is None:
            known = self._scope.names[text] = self._new()
            self._line(f"const {kind} {known} = {text};")
        return known

    def choose(self, kind: str, cases: list[tuple[str, Callable[[], str]]], other: str) -> str:
        """See `tensors.Body.choose`."""
        chosen = self._new()
        self._line(f"{kind} {chosen} = {other};")
        start = "if"
        for holds, value in cases:
            with self._block(f"{start} ({holds})"):
                self._line(f"{chosen} = {value()};")
            start = "else if"
        return chosen

    def reduce(self, reduced: ReducedTensor, index: Index) -> str:
        """See `tensors.Body.reduce`."""
        total = self._new()
        neutral = NEUTRAL[reduced.how, reduced.kind == NUMBER]
        self._line(f"{reduced.kind} {total} = {neutral};")
        if self._is_shared:
            self._reduce_in_block(reduced, index, total)
        else:
            self._reduce_in_loops(reduced, index, total, neutral)
        return total

    def flat(self, index: Index, shape: Shape) -> str:
        """See `tensors.Body.flat`."""
        known = self._scope.flats.get((index, _texts(shape)))
        if known is not None:
            return known
        text = "0"
        for at, size in zip(index, shape, strict=True):
            if size.is_one:
                continue
            if text != "0":
                text = f"{text} * {self.macro(size)}"
            text = at if text == "0" else text if at == "0" else f"({text} + {at})"
        return text

    def unflat(self, flat: str, shape: Shape) -> Index:
        """See `tensors.Body.unflat`."""
        flat = self.name("Index", flat)
        if flat == self._element:
            return self._in_row(shape)
        return self._split(flat, shape)

    def _in_row(self, shape: Shape) -> Index:
        """Return the index of the present element of the row: the row's own, then along it."""
        assert self._row is not None
        rows, length = self._row
        for place in range(1, len(shape)):
            before, behind = count_of(shape[:place]), count_of(shape[place:])
            if before.values == rows.values and behind.text == length.text:
                of_row = self._named("at", shape[:place])
                found = (*of_row, *self._named("along", shape[place:]))
                self._scope.flats[found, _texts(shape)] = self._element
                return found
        return self._split(self._element, shape)

    def _named(self, flat: str, shape: Shape) -> Index:
        """Return the index of a position, computed once."""
        found = tuple(self.name("Index", at) for at in self.unflat(flat, shape))
        self._scope.flats[found, _texts(shape)] = flat
        return found

    def _split(self, flat: str, shape: Shape) -> Index:
        index: list[str] = []
        below = ""
        for place, size in reversed(list(enumerate(shape))):
            at = f"{flat} / ({below})" if below else flat
            is_first = all(s.is_one for s in shape[:place])
            macro = self.macro(size)
            if size.is_one:
                index.insert(0, "0")
                continue
            index.insert(0, at if is_first and not below else f"({at})" if is_first
                         else f"({at} % {macro})")  # fmt: skip
            below = f"{below} * {macro}" if below else f"(Index){macro}"
        found = tuple(index)
        self._scope.flats[found, _texts(shape)] = flat
        return found

    def read(self, tensor: Tensor, index: Index) -> str:
        """See `tensors.Body.read`."""
        key = (id(tensor), index)
        known = self._scope.reads.get(key)
        if known is None:
            known = self._scope.reads[key] = tensor.at(self, index)
            self._kept.append(tensor)  # its id stays its own
        return known

    def _scan(self, root: ScannedTensor, target: StoredTensor) -> None:
        """Each thread goes along lines of its own."""
        one = root.shape[root.axis]
        lines = tuple(s for place, s in enumerate(root.shape) if place != root.axis)
        total, along = "total", "along"
        with self._each_of(lines) as index:
            self._line(f"{root.kind} {total} = {NEUTRAL[root.how, root.kind == NUMBER]};")
            with self._block(f"for (Index {along} = 0; {along} < {self.macro(one)}; ++{along})"):
                whole = (*index[: root.axis], along, *index[root.axis :])
                value = self.read(root.of, whole)
                self._line(f"{total} = {_COMBINED[root.how].format(total, value)};")
                self._put(target, whole, total)

    def _reduce_in_loops(
        self, reduced: ReducedTensor, index: Index, total: str, neutral: str
    ) -> None:
        *outer, last = reduced.loops
        with self._loops(outer) as before:
            if reduced.how == "sum" and max(last.values) > _CHUNK:
                chunk, at = self._new(), self._new()
                head = f"for (Index {chunk} = 0; {chunk} < {self.macro(last)}; {chunk} += {_CHUNK})"
                with self._block(head):
                    part = self._new()
                    self._line(f"{reduced.kind} {part} = {neutral};")
                    end = f"{at} < {self.macro(last)} && {at} < {chunk} + {_CHUNK}"
                    with self._block(f"for (Index {at} = {chunk}; {end}; ++{at})"):
                        value = self.read(reduced.of, (*index, *before, at))
                        self._line(f"{part} += {value};")
                    self._line(f"{total} += {part};")
            else:
                with self._loops([last]) as (at,):
                    value = self.read(reduced.of, (*index, *before, at))
                    self._line(f"{total} = {_COMBINED[reduced.how].format(total, value)};")

    def _reduce_in_block(self, reduced: ReducedTensor, index: Index, total: str) -> None:
        self._shares = reduced.kind
        each = self._new()
        count = self.macro(count_of(reduced.loops))
        combined = _COMBINED[reduced.how]
        with self._block(f"for (Index {each} = lane; {each} < {count}; {each} += BLOCK)"):
            value = self.read(reduced.of, (*index, *self.unflat(each, reduced.loops)))
            self._line(f"{total} = {combined.format(total, value)};")
        self._line(f"parts[lane] = {total};")
        self._line(self._frame.barrier)
        if reduced.how in ("max", "min"):
            self._join_in_pairs(combined, total)
            return
        with self._block("for (int step = BLOCK / 2; step > 0; step /= 2)"):
            joined = combined.format("parts[lane]", "parts[lane + step]")
            self._line(f"if (lane < step) parts[lane] = {joined};")
            self._line(self._frame.barrier)
        self._line(f"{total} = parts[0];")
        self._line(self._frame.barrier)  # all have read it before the next element's is written

    def _join_in_pairs(self, combined: str, total: str) -> None:
        """Join all lanes' parts without a branch: each lane ends with the whole.

        A choice between two parts under `if (lane < step)` makes SYCL's compiler for CPUs part the
        lanes, and some of them then read the result before it is there.
        """
        with self._block("for (int step = BLOCK / 2; step > 0; step /= 2)"):
            self._line(f"{total} = {combined.format(total, 'parts[lane ^ step]')};")
            self._line(self._frame.barrier)
            self._line(f"parts[lane] = {total};")
            self._line(self._frame.barrier)

    def _put(self, target: StoredTensor, index: Index, value: str) -> None:
        guard = "if (lane == 0) " if self._shares else ""
        place = self.flat(index, target.shape)
        self._line(f"{guard}to[{place}] = {self._narrowed(target, value)};")

    def _narrowed(self, target: StoredTensor, value: str) -> str:
        narrowed = self._frame.narrowing.get(target.dtype, f"({self._type(target)})" + "{0}")
        return narrowed.format(value)

    @contextmanager
    def _each_of(self, shape: Shape) -> Iterator[Index]:
        count = self.macro(count_of(shape)) if shape else "1"
        with self._block(f"for (Index at = first; at < {count}; at += stride)"):
            yield self._named("at", shape)

    @contextmanager
    def _loops(self, sizes: list[SymbolicSize]) -> Iterator[Index]:
        if not sizes:
            yield ()
            return
        at = "0"
        if sizes[0].is_one:
            with self._loops(sizes[1:]) as inner:
                yield (at, *inner)
            return
        at = self._new()
        with (
            self._block(f"for (Index {at} = 0; {at} < {self.macro(sizes[0])}; ++{at})"),
            self._loops(sizes[1:]) as inner,
        ):
            yield (at, *inner)

    @contextmanager
    def _block(self, head: str) -> Iterator[None]:
        self._line(head + " {")
        outer = self._scope
        self._scope = outer.inner()
        self._depth += 1
        yield
        self._depth -= 1
        self._scope = outer
        self._line("}")

    def _line(self, text: str) -> None:
        self._lines.append("  " * self._depth + text)

    def _new(self) -> str:
        self._count += 1
        return f"v{self._count}"

    def _type(self, stored: StoredTensor) -> str:
        return self._frame.types.get(stored.dtype, stored.kind)


def _texts(shape: Shape) -> tuple[str, ...]:
    return tuple(size.text for size in shape)


def _drop_unused(lines: list[str]) -> None:
    """Take out positions that nobody asked for."""
    for place in reversed(range(len(lines))):
        declared = _POSITION.match(lines[place])
        if declared and not any(
            re.search(rf"\b{declared[1]}\b", line) for line in lines[place + 1 :]
        ):
            del lines[place]
