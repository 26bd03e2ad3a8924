"""Trivial answers, which a lazy candidate would write instead of computing; tasks must refuse them.

Every answer is compared with the expected output like a candidate's.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final

import torch

from evaluator_svc.judge.comparison.compare import allowed_mismatches, compare_output
from evaluator_svc.judge.draws.expected_output import ExpectedOutput
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload
from evaluator_svc.judge.reference.formats import computable
from evaluator_svc.judge.tensors.relative_errors import largest_error
from evaluator_svc.judge.tensors.scales import groups_of
from kernel_foundry.domain.task import Tolerance

ANOTHER_DRAW: Final = "the answer to another draw"
"""Passes where the output is constant."""

_EXACT: Final = Tolerance(rtol=0.0, atol=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One trivial answer to one output of one input set."""

    name: str
    make: Callable[[], torch.Tensor | None]
    """Gives the values; None: there is no such answer to this output."""
    may_be_the_task: bool = False
    """To the last bit it is no shortcut but what the operator does (a transposition)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrivialTrial:
    """How an answer fared."""

    name: str
    output: int
    share: float
    """Share of the elements that are right."""
    is_exact: bool = False
    """Every element is what was expected, to the last bit."""
    error: float = 0.0
    """Largest error where all are right, in the units of the tolerance."""
    passes: bool = True
    """Whether a candidate that writes this would be right."""


@dataclass(frozen=True, kw_only=True)
class DrawPair:
    """What answers are tried on: one workload's outputs on two input sets."""

    prepared: PreparedWorkload
    draws: tuple[Callable[[], InputSet], Callable[[], InputSet]]
    """Give the sets: those of a large workload are drawn again for each use."""
    expect: Callable[[torch.Tensor], ExpectedOutput]
    """Makes an output ready to be compared with."""
    elsewhere: tuple[torch.Tensor, ...] = ()
    """Outputs of another workload; empty when there is none."""

    @cached_property
    def expected(self) -> tuple[ExpectedOutput, ...]:
        """Outputs of the first set."""
        return tuple(map(self.expect, self.draws[0]().expected()))

    @cached_property
    def other_expected(self) -> tuple[ExpectedOutput, ...]:
        """Outputs of the second one."""
        return tuple(map(self.expect, self.draws[1]().expected()))


def try_answers(pair: DrawPair, tolerance: Tolerance) -> Iterator[TrivialTrial]:
    """Yield how every trivial answer to every output fared; a pass holds on both input sets."""
    for index in range(len(pair.expected)):
        seconds = {a.name: a for a in _answers(pair, index, own=1)}
        for answer in _answers(pair, index, own=0):
            tried = _try(answer, pair.expected[index], index, tolerance)
            if tried is not None and tried.passes:
                again = _try(seconds[answer.name], pair.other_expected[index], index, tolerance)
                tried = _both(tried, again)
            if tried is not None and not (tried.is_exact and answer.may_be_the_task):
                yield tried


def _both(first: TrivialTrial, second: TrivialTrial | None) -> TrivialTrial | None:
    if second is None or not second.passes:
        return second
    return TrivialTrial(
        name=first.name,
        output=first.output,
        share=min(first.share, second.share),
        is_exact=first.is_exact and second.is_exact,
        error=max(first.error, second.error),
    )


def _try(
    answer: Answer, expected: ExpectedOutput, index: int, tolerance: Tolerance
) -> TrivialTrial | None:
    tolerance = tolerance.of(index)
    values = answer.make()
    if values is None or not expected.tensor.numel():
        return None
    values = values.to(expected.tensor.dtype).contiguous()
    found = compare_output(values.data_ptr(), expected, tolerance)
    if wrong := int(found.mismatch_count):
        count = values.numel()
        # Whole numbers have all to be right.
        matched = 1.0 if expected.is_exact else tolerance.matched
        return TrivialTrial(
            name=answer.name,
            output=index,
            share=1.0 - wrong / count,
            passes=wrong <= allowed_mismatches(count, matched, found.max_abs_error),
        )
    is_exact = not compare_output(values.data_ptr(), expected, _EXACT).mismatch_count
    error = 0.0 if is_exact else largest_error(values, expected.tensor)
    return TrivialTrial(name=answer.name, output=index, share=1.0, is_exact=is_exact, error=error)


def _answers(pair: DrawPair, index: int, *, own: int) -> Iterator[Answer]:
    """Yield the answers on input set `own`; of a large workload those that need no copies."""
    both = (pair.expected, pair.other_expected)
    output, other = (computable(both[side][index].tensor) for side in (own, 1 - own))
    yield Answer(name="an output of zeros", make=lambda: torch.zeros_like(output))
    yield Answer(name="an output of ones", make=lambda: torch.ones_like(output))
    yield Answer(
        name="the mean of another output everywhere"
        if output.is_floating_point()
        else "the most frequent value of another output everywhere",
        make=lambda: torch.full_like(output, _typical(other)),
    )
    yield Answer(name=ANOTHER_DRAW, make=lambda: other)
    draw = pair.draws[own]
    if pair.prepared.is_large:
        for place, name in _names_of_size(draw(), output.numel()):
            yield Answer(
                name=f"a copy of {name}", make=partial(_copied_of_draw, draw, place, output)
            )
        return
    sources = _sources(draw())
    for name, value in sources:
        yield Answer(name=f"a copy of {name}", make=partial(_copied, value, output))
    yield from _averages(output)
    if pair.elsewhere:
        source = computable(pair.elsewhere[index])
        yield Answer(
            name="the answer of another workload, cropped or tiled",
            make=lambda: _fitted(source, output),
        )
    for name, value in sources:
        yield from _rearranged(name, value, output)


def _typical(output: torch.Tensor) -> float:
    if output.is_floating_point():
        return float(output.float().mean())
    return float(output.flatten().mode().values)


def _sources(input_set: InputSet) -> Sequence[tuple[str, torch.Tensor]]:
    """Return inputs and parameters with what they are called in messages."""
    inputs = zip(input_set.arguments.names, input_set.inputs, strict=True)
    named = [(f"input {name!r}", value) for name, value in inputs]
    named += [(f"parameter {path!r}", value) for path, value in input_set.state.items()]
    return [(name, computable(value)) for name, value in named]


def _names_of_size(input_set: InputSet, element_count: int) -> list[tuple[int, str]]:
    """Return which sources have so many elements: their places and what they are called."""
    sources = enumerate(_sources(input_set))
    return [(place, name) for place, (name, value) in sources if value.numel() == element_count]


def _copied_of_draw(
    draw: Callable[[], InputSet], place: int, output: torch.Tensor
) -> torch.Tensor | None:
    """Return a copy of what is drawn for it, and not kept."""
    return _copied(_sources(draw())[place][1], output)


def _averages(output: torch.Tensor) -> Iterator[Answer]:
    """Yield averages of the answer itself: what varies less than the tolerance is not checked."""
    groups = groups_of(tuple(output.shape))
    if not output.is_floating_point():
        return
    if output.numel() > 1:
        rows = groups.lines(output)
        yield Answer(
            name="the mean of each row", make=lambda: _mean(rows, 1, output), may_be_the_task=True
        )
    if groups.count > 1:
        columns = output.reshape(len(output), -1)
        yield Answer(
            name="the mean of each column",
            make=lambda: _mean(columns, 0, output),
            may_be_the_task=True,
        )


def _mean(values: torch.Tensor, axis: int, output: torch.Tensor) -> torch.Tensor | None:
    """Return means along an axis everywhere; None where all values along it are the same."""
    if values.shape[axis] < 2 or bool(values.eq(values.narrow(axis, 0, 1)).all()):
        return None
    return values.float().mean(axis, keepdim=True).expand(values.shape).reshape(output.shape)


def _copied(value: torch.Tensor, output: torch.Tensor) -> torch.Tensor | None:
    return value.reshape(output.shape) if value.numel() == output.numel() else None


def _rearranged(name: str, value: torch.Tensor, output: torch.Tensor) -> Iterator[Answer]:
    changes: dict[str, Callable[[], torch.Tensor | None]] = {
        f"{name}, negated": lambda: _copied(-value, output) if _is_signed(value) else None,
        f"{name}, transposed": lambda: _transposed(value, output),
        f"{name}, broadcast": lambda: _broadcast(value, output),
        f"{name}, cropped or tiled": lambda: _fitted_flat(value, output),
        f"the first element of {name} everywhere": lambda: _first(value, output),
    }
    for what, make in changes.items():
        yield Answer(name=what, make=make, may_be_the_task=True)


def _is_signed(value: torch.Tensor) -> bool:
    return value.dtype is not torch.bool


def _transposed(value: torch.Tensor, output: torch.Tensor) -> torch.Tensor | None:
    if value.ndim < 2 or value.numel() != output.numel():
        return None
    return value.transpose(-1, -2).reshape(output.shape)


def _broadcast(value: torch.Tensor, output: torch.Tensor) -> torch.Tensor | None:
    if value.numel() == output.numel():
        return None
    try:
        return value.expand(output.shape)
    except RuntimeError:  # the shapes do not broadcast
        return None


def _first(value: torch.Tensor, output: torch.Tensor) -> torch.Tensor | None:
    return (
        value.flatten()[:1].expand(output.numel()).reshape(output.shape)
        if len(value.shape)
        else None
    )


def _fitted_flat(value: torch.Tensor, output: torch.Tensor) -> torch.Tensor | None:
    if not value.numel() or value.numel() == output.numel():
        return None
    repeats = -(-output.numel() // value.numel())
    return value.flatten().repeat(repeats)[: output.numel()].reshape(output.shape)


def _fitted(source: torch.Tensor, output: torch.Tensor) -> torch.Tensor | None:
    """Return `source` cut and repeated along every axis to the shape of `output`."""
    if source.ndim != output.ndim or not source.numel():
        return None
    for axis, size in enumerate(output.shape):
        places = torch.arange(size, device=source.device) % source.shape[axis]
        source = source.index_select(axis, places)
    return source
