"""Writes a program as a candidate: device code with each different kernel once, and its plan."""

from collections.abc import Iterator
from dataclasses import dataclass

from generator_svc.recipes.plain.kernel_text import KernelText, KernelWriter
from generator_svc.recipes.plain.languages import FRAMES
from generator_svc.recipes.plain.program import SCRATCH, KernelStep
from generator_svc.recipes.plain.sizes import Shape, SymbolicSize, count_of
from generator_svc.recipes.plain.tensors import ReducedTensor, ScannedTensor, StoredTensor, Tensor
from generator_svc.recipes.plan_text import dictionary
from generator_svc.recipes.unsupported import RecipeUnsupported
from kernel_foundry.domain.language import Language

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


def write_candidate(
    steps: list[KernelStep], language: Language, style: Style, comment: str
) -> tuple[str, str]:
    """Return (device code, plan).

    Args:
        steps: In order.
        language: Of the kernels.
        style: How they are written.
        comment: First line of the plan.

    Raises:
        RecipeUnsupported: there are more kernels than a candidate may have.
    """
    steps = _read(steps, _Writer(language, style))
    writer = _Writer(language, style)
    launches = [writer.launch(step) for step in steps]
    index = "int64_t" if writer.most_elements >= _MOST_SMALL else "int"
    frame = FRAMES[language]
    needed = frame.preamble if any(t in writer.code for t in frame.types.values()) else ""
    code = f"{needed}typedef {index} Index;\n\n{writer.code}"
    plan = (
        "\n".join([comment, *writer.head(), *_grids(launches), "", *_body(steps, launches)]) + "\n"
    )
    if len(writer.kernels) > _MOST_KERNELS or len(plan) > _MOST_PLAN or len(code) > _MOST_CODE:
        raise RecipeUnsupported(f"a graph of {len(steps)} kernels")
    return code, plan


@dataclass(frozen=True, kw_only=True)
class _Launch:
    kernel: str
    grid: str
    tensors: tuple[StoredTensor, ...]
    target: StoredTensor
    count: str
    local: str


class _Writer:
    def __init__(self, language: Language, style: Style) -> None:
        self._language, self._style = language, style
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

    def launch(self, step: KernelStep) -> _Launch:
        reduced = next(_reductions(step.root), None)
        is_shared = reduced is not None and self._is_shared(reduced, step)
        text = KernelWriter(FRAMES[self._language], self._macro, is_shared=is_shared).write(
            step.root, step.target
        )
        kernel = self.kernels.setdefault((text.head, text.body), f"step_{len(self.kernels)}")
        for stored in (*text.tensors, step.target):
            self._reach(stored.shape)
        if reduced is not None:
            self._reach(reduced.loops)
        elements = step.root.shape
        if isinstance(step.root, ScannedTensor):
            elements = tuple(s for n, s in enumerate(elements) if n != step.root.axis)
        count = self._count(elements)
        needs_local = text.shares and FRAMES[self._language].block_parameter
        dtype = {"float": "float32", "int64_t": "int64", "bool": "bool"}.get(text.shares, "")
        return _Launch(
            kernel=kernel,
            grid=f"{'block_each' if text.shares else 'thread_each'}({count})",
            tensors=text.tensors,
            target=step.target,
            count=self._count(step.target.shape),
            local=f"local(BLOCK, {dtype})" if needs_local else "",
        )

    def _is_shared(self, reduced: ReducedTensor, step: KernelStep) -> bool:
        if self._style.share != "suited":
            return self._style.share == "always"
        terms, elements = _most(reduced.loops), _most(step.target.shape)
        return terms >= _LEAST_SHARED and (reduced.is_shared or elements <= _FEW_ELEMENTS)

    def _reach(self, shape: Shape) -> None:
        self.most_elements = max(self.most_elements, _most(shape))

    def _macro(self, size: SymbolicSize) -> str:
        if size.is_literal:
            return size.text
        return self._macros.setdefault(size.text, f"D{len(self._macros)}")

    def _count(self, shape: Shape) -> str:
        return self._macro(count_of(shape)) if shape else "1"


def _grids(launches: list["_Launch"]) -> Iterator[str]:
    """Yield the helpers that give grids; few letters a launch keep plans of deep networks short."""
    for name, blocks in (("thread_each", "cdiv(count, BLOCK)"), ("block_each", "count")):
        if any(launch.grid.startswith(name) for launch in launches):
            yield f"\ndef {name}(count):\n    return min({blocks}, {_MOST_GROUPS})\n"


def _read(steps: list[KernelStep], writer: "_Writer") -> list[KernelStep]:
    """Return the steps that an output needs: an operator may have results that nobody asked for."""
    found: list[KernelStep] = []
    wanted: set[StoredTensor] = set()
    for step in reversed(steps):
        if step.target in wanted or not _is_scratch(step.target, steps):
            found.insert(0, step)
            wanted.update(writer.launch(step).tensors)
    return found


def _body(steps: list[KernelStep], launches: list[_Launch]) -> list[str]:
    """Return the plan's functions; scratch that nobody reads any more is taken again."""
    named = list(dict.fromkeys(
        tensor.name
        for launch in launches
        for tensor in (*launch.tensors, launch.target)
        if not _is_scratch(tensor, steps)
    ))  # fmt: skip
    last = {t: place for place, launch in enumerate(launches) for t in launch.tensors}
    names: dict[StoredTensor, str] = {}
    free: dict[tuple[str, str], list[str]] = {}
    lines = [f"def launch({', '.join(named)}):"]
    for place, launch in enumerate(launches):
        target = launch.target
        if _is_scratch(target, steps):
            spare = free.setdefault((launch.count, target.dtype), [])
            names[target] = spare.pop() if spare else target.name
            if names[target] == target.name:
                lines.append(f"    {target.name} = empty({launch.count}, {target.dtype})")
        arguments = [names.get(t, t.name) for t in (*launch.tensors, target)]
        arguments += [launch.local] if launch.local else []
        lines.append(f"    {launch.kernel}[{launch.grid}, BLOCK]({', '.join(arguments)})")
        for tensor in launch.tensors:
            if tensor in names and last[tensor] == place:
                count = next(other.count for other in launches if other.target is tensor)
                free[count, tensor.dtype].append(names[tensor])
    return lines


def _is_scratch(tensor: StoredTensor, steps: list[KernelStep]) -> bool:
    return tensor.name.startswith(SCRATCH) and any(step.target is tensor for step in steps)


def _reductions(tensor: Tensor) -> Iterator[ReducedTensor]:
    """Yield what a kernel of `tensor` loops over."""
    if isinstance(tensor, ReducedTensor):
        yield tensor
        return
    for operand in tensor.operands:
        yield from _reductions(operand)


def _most(shape: Shape) -> int:
    """Return the elements of a shape in the largest workload."""
    counts = [1]
    for values in zip(*(size.values for size in shape), strict=True):
        count = 1
        for value in values:
            count *= value
        counts.append(count)
    return max(counts)
