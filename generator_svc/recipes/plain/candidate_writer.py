"""Writes a program as a candidate: device code with each different kernel once, and its plan."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from generator_svc.recipes.plain.fixed_sizes import FixedSize
from generator_svc.recipes.plain.kernel_text import KernelText, KernelWriter
from generator_svc.recipes.plain.languages import FRAMES
from generator_svc.recipes.plain.program import (
    SCRATCH,
    KernelStep,
    LibraryStep,
    LibraryValue,
    Step,
)
from generator_svc.recipes.plain.row_steps import RowStep, joined
from generator_svc.recipes.plain.sizes import PlanNumber, Shape, count_of
from generator_svc.recipes.plain.tensors import ScannedTensor, StoredTensor, Tensor, reductions
from generator_svc.recipes.plan_text import dictionary
from generator_svc.recipes.unsupported import RecipeUnsupported
from kernel_foundry.domain.language import Language
from kernel_foundry.plan import LIBRARY_OPS

_MOST_GROUPS = 1 << 20
"""Blocks of a launch; what is beyond them, threads take in further rounds."""

_MOST_SMALL = 1 << 30
"""Elements that 32-bit positions reach, a round of all threads above the last one included."""

_MOST_KERNELS, _MOST_PLAN, _MOST_CODE = 250, 60_000, 250_000
"""Below the limits of plans: see docs/launch-plan.md."""

_LEAST_SHARED, _FEW_ELEMENTS = 64, 4096
"""Terms from which threads may share an element, and elements so few that they should."""


@dataclass(frozen=True, kw_only=True)
class Style:
    """How kernels are written."""

    share: str
    """"never" or "always": whether a block computes each element of a reduction together;
    "suited": where its loop runs over neighbours, or elements are few."""
    blocks: tuple[int, ...]
    """Threads of a block, the default first."""
    joins_rows: bool = False
    """Whether reductions of rows and what reads them there are one kernel."""


def write_candidate(
    steps: list[Step],
    language: Language,
    style: Style,
    *,
    comment: str,
    fixed: Sequence[FixedSize] = (),
) -> tuple[str, str]:
    """Return (device code, plan).

    Args:
        steps: In order.
        language: Of the kernels.
        style: How they are written.
        comment: First line of the plan.
        fixed: What the plan requires of a workload.

    Raises:
        RecipeUnsupported: there are more kernels than a candidate may have.
    """
    steps = _read(steps, _Writer(language, style))
    writer = _Writer(language, style, shaped=_called_with(steps))
    lines = [line for step in _joined(steps, language, style) for line in writer.lines(step)]
    index = "int64_t" if writer.most_elements >= _MOST_SMALL else "int"
    frame = FRAMES[language]
    needed = frame.preamble if any(t in writer.code for t in frame.types.values()) else ""
    code = f"{needed}typedef {index} Index;\n\n{writer.code}"
    body = _body(steps, lines, fixed)
    plan = "\n".join([comment, *writer.head(), *_grids(lines), "", *body]) + "\n"
    if len(writer.kernels) > _MOST_KERNELS or len(plan) > _MOST_PLAN or len(code) > _MOST_CODE:
        raise RecipeUnsupported(f"a graph of {len(steps)} kernels")
    return code, plan


@dataclass(frozen=True, kw_only=True)
class _Launch:
    kernel: str
    grid: str
    tensors: tuple[StoredTensor, ...]
    target: StoredTensor
    scratch: str
    """Size of the target, where that is scratch."""
    local: str

    def text(self, names: dict[StoredTensor, str]) -> str:
        arguments = [names.get(t, t.name) for t in (*self.tensors, self.target)]
        arguments += [self.local] if self.local else []
        return f"{self.kernel}[{self.grid}, BLOCK]({', '.join(arguments)})"


@dataclass(frozen=True, kw_only=True)
class _Call:
    step: LibraryStep
    scratch: str

    @property
    def tensors(self) -> tuple[StoredTensor, ...]:
        return self.step.tensors

    @property
    def target(self) -> StoredTensor:
        return self.step.target

    def text(self, names: dict[StoredTensor, str], out: str) -> str:
        required = LIBRARY_OPS[self.step.name].required
        given = [
            _argument(value, names) if key in required else f"{key}={_argument(value, names)}"
            for key, value in self.step.given
        ]
        into = f", out={out}" if out else ""
        return f"ops.{self.step.name}({', '.join(given)}{into})"


def _argument(value: LibraryValue, names: dict[StoredTensor, str]) -> str:
    return names.get(value, value.name) if isinstance(value, StoredTensor) else repr(value)


class _Writer:
    def __init__(
        self, language: Language, style: Style, *, shaped: frozenset[StoredTensor] = frozenset()
    ) -> None:
        self._language, self._style = language, style
        self._shaped = shaped
        self._macros: dict[str, str] = {}
        self.kernels: dict[tuple[str, str], str] = {}
        self.most_elements = 0

    @property
    def code(self) -> str:
        return "\n".join(
            KernelText(head=head, body=body, tensors=(), shares="").with_name(name)
            for (head, body), name in self.kernels.items()
        )

    def head(self) -> list[str]:
        lines = [f"TUNE = {dictionary({'BLOCK': list(self._style.blocks)})}"]
        constants = {name: text for text, name in self._macros.items()}
        return [*lines, f"CONST = {dictionary(constants)}"] if constants else lines

    def lines(self, step: Step | RowStep) -> list[_Launch | _Call]:
        if not isinstance(step, RowStep):
            return [self.line(step)]
        joined = self._launch_rows(step)
        return [joined] if joined else [self.launch(s) for s in (*step.reduced, step.last)]

    def line(self, step: Step) -> _Launch | _Call:
        if isinstance(step, LibraryStep):
            return _Call(step=step, scratch=self._scratch(step.target))
        return self.launch(step)

    def launch(self, step: KernelStep) -> _Launch:
        is_shared = self.is_shared(step)
        text = KernelWriter(FRAMES[self._language], self._macro, is_shared=is_shared).write(
            step.root, step.target
        )
        elements = step.root.shape
        if isinstance(step.root, ScannedTensor):
            elements = tuple(s for n, s in enumerate(elements) if n != step.root.axis)
        return self._launched(text, step, step.root, elements)

    def _launch_rows(self, step: RowStep) -> _Launch | None:
        text = KernelWriter(FRAMES[self._language], self._macro, is_shared=True).write_rows(
            [(s.root, s.target) for s in step.reduced], step.last.root, step.last.target
        )
        first = step.reduced[0].root
        return self._launched(text, step.last, first, first.shape) if text else None

    def _launched(
        self, text: KernelText, step: KernelStep, looping: Tensor, elements: Shape
    ) -> _Launch:
        kernel = self.kernels.setdefault((text.head, text.body), f"step_{len(self.kernels)}")
        for stored in (*text.tensors, step.target):
            self._reach(stored.shape)
        for reduced in reductions(looping):
            self._reach(reduced.loops)
        count = self._count(elements)
        needs_local = text.shares and FRAMES[self._language].block_parameter
        dtype = {"float": "float32", "int64_t": "int64", "bool": "bool"}.get(text.shares, "")
        return _Launch(
            kernel=kernel,
            grid=f"{'block_each' if text.shares else 'thread_each'}({count})",
            tensors=text.tensors,
            target=step.target,
            scratch=self._scratch(step.target),
            local=f"local(BLOCK, {dtype})" if needs_local else "",
        )

    def _scratch(self, target: StoredTensor) -> str:
        if target in self._shaped and target.shape:
            sizes = [self._macro(size) for size in target.shape]
            return f"({', '.join(sizes)})" if len(sizes) > 1 else sizes[0]
        return self._count(target.shape)

    def is_shared(self, step: KernelStep) -> bool:
        reduced = next(reductions(step.root), None)
        if reduced is None:
            return False
        if self._style.share != "suited":
            return self._style.share == "always"
        terms, elements = _most(reduced.loops), _most(step.target.shape)
        return terms >= _LEAST_SHARED and (reduced.is_shared or elements <= _FEW_ELEMENTS)

    def _reach(self, shape: Shape) -> None:
        self.most_elements = max(self.most_elements, _most(shape))

    def _macro(self, size: PlanNumber) -> str:
        if size.is_literal:
            return size.text
        return self._macros.setdefault(size.text, f"D{len(self._macros)}")

    def _count(self, shape: Shape) -> str:
        return self._macro(count_of(shape)) if shape else "1"


def _joined(steps: list[Step], language: Language, style: Style) -> list[Step | RowStep]:
    if not style.joins_rows:
        return list(steps)
    writer = _Writer(language, style)
    reads = {step.target: writer.line(step).tensors for step in steps}
    return joined(steps, reads, writer.is_shared)


def _called_with(steps: list[Step]) -> frozenset[StoredTensor]:
    """Return what the library reads or makes: its shape counts, not its size alone."""
    calls = [step for step in steps if isinstance(step, LibraryStep)]
    return frozenset(tensor for call in calls for tensor in (*call.tensors, call.target))


def _grids(lines: list[_Launch | _Call]) -> Iterator[str]:
    """Yield the helpers that give grids; few letters a launch keep plans of deep networks short."""
    for name, blocks in (("thread_each", "cdiv(count, BLOCK)"), ("block_each", "count")):
        if any(isinstance(line, _Launch) and line.grid.startswith(name) for line in lines):
            yield f"\ndef {name}(count):\n    return min({blocks}, {_MOST_GROUPS})\n"


def _read(steps: list[Step], writer: _Writer) -> list[Step]:
    """Return the steps that an output needs: an operator may have results that nobody asked for."""
    found: list[Step] = []
    wanted: set[StoredTensor] = set()
    for step in reversed(steps):
        is_output = isinstance(step, LibraryStep) and bool(step.output)
        if step.target in wanted or is_output or not _is_scratch(step.target, steps):
            found.insert(0, step)
            wanted.update(writer.line(step).tensors)
    return found


def _body(steps: list[Step], lines: list[_Launch | _Call], fixed: Sequence[FixedSize]) -> list[str]:
    """Return the plan's functions; scratch that nobody reads any more is taken again."""
    outputs = {s.target: s.output for s in steps if isinstance(s, LibraryStep) and s.output}
    named = list(dict.fromkeys(
        outputs.get(tensor, tensor.name)
        for line in lines
        for tensor in (*line.tensors, line.target)
        if tensor in outputs or not _is_scratch(tensor, steps)
    ))  # fmt: skip
    last = {t: place for place, line in enumerate(lines) for t in line.tensors}
    sizes = {line.target: line.scratch for line in lines}
    names = dict(outputs)
    free: dict[tuple[str, str], list[str]] = {}
    names_read = dict.fromkeys([*named, *(size.name for size in fixed)])
    found = [f"def launch({', '.join(names_read)}):"]
    found += [f"    require({size.condition})" for size in fixed]
    for place, line in enumerate(lines):
        target = line.target
        is_scratch = target not in outputs and _is_scratch(target, steps)
        spare = free.setdefault((line.scratch, target.dtype), []) if is_scratch else []
        is_spare = bool(spare)
        if is_scratch:
            names[target] = spare.pop() if spare else target.name
        if isinstance(line, _Launch):
            if is_scratch and not is_spare:
                found.append(f"    {target.name} = empty({line.scratch}, {target.dtype})")
            found.append(f"    {line.text(names)}")
        elif is_scratch and not is_spare:
            found.append(f"    {target.name} = {line.text(names, '')}")
        else:
            found.append(f"    {line.text(names, names[target])}")
        for tensor in line.tensors:
            if tensor in names and tensor not in outputs and last[tensor] == place:
                free[sizes[tensor], tensor.dtype].append(names[tensor])
    return found


def _is_scratch(tensor: StoredTensor, steps: list[Step]) -> bool:
    return tensor.name.startswith(SCRATCH) and any(step.target is tensor for step in steps)


def _most(shape: Shape) -> int:
    """Return the elements of a shape in the largest workload."""
    counts = [1]
    for values in zip(*(size.values for size in shape), strict=True):
        count = 1
        for value in values:
            count *= value
        counts.append(count)
    return max(counts)
