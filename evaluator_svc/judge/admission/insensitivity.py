"""Finds inputs, parameters and parts of inputs that outputs hardly depend on, and dead outputs.

A kernel that leaves such a thing out is right, so the task gets a warning.
"""

import dataclasses
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, Self

import torch

from evaluator_svc.judge.admission.screening import Screening
from evaluator_svc.judge.admission.trivial_answers import DrawPair
from evaluator_svc.judge.comparison.compare import matches
from evaluator_svc.judge.draws.expected_output import ExpectedOutput
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.reference.formats import computable, same_values
from kernel_foundry.domain.admission import TensorRole
from kernel_foundry.domain.task import Tolerance

_SECONDS: Final = 5.0
"""Seconds of one workload for finding out of every parameter and part whether it matters."""

_MORE_SEEDS: Final = 10
"""Draws on which something must make no difference before it is warned of: a mask may hide it in
one."""

_WARNED_SHARE: Final = 0.05
"""Idle places of an output are warned of from this share on; the first of a scan may be 0."""

_PARTS: Final = 4
"""Parts that an axis of an input is looked at in."""


def find_insensitive(pair: DrawPair, tolerance: Tolerance) -> Screening:
    """Return the inputs and parameters that the outputs of a workload hardly depend on."""
    found = Screening()
    swap = _InputSwap(pair, tolerance)
    names = swap.input_names
    idle = list(_idle_inputs(swap, found))
    if idle and len(idle) == len(names):
        reason = (
            f"the output hardly depends on any input ({', '.join(idle)}): choose inputs on which it"
            " does"
        )
        found.refusals.append(reason)
        found.degeneracies.append(reason)
        return found
    found.warnings += [
        f"the output hardly depends on input {name!r}: a kernel that ignores it passes"
        for name in idle
    ]
    found.warnings += _idle_parameters(swap)
    if not pair.prepared.is_large:
        found.warnings += _idle_parts(swap, idle)
        found.warnings += _idle_outputs(pair, tolerance)
    return found


class _InputSwap:
    """One input set whose parts are exchanged for those of another.

    While the reference runs, only the set that it runs on is in memory.
    """

    def __init__(self, pair: DrawPair, tolerance: Tolerance) -> None:
        self.draw, self.draw_other = pair.draws
        self._expected: Sequence[ExpectedOutput] = pair.expected
        self._pair = pair
        self._tolerance = tolerance
        self.deadline = time.monotonic() + _SECONDS

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of forward's arguments that are tensors."""
        tensors = self._pair.prepared.tensors
        return tuple(t.name for t in tensors if t.role is TensorRole.INPUT)

    @property
    def parameter_paths(self) -> tuple[str, ...]:
        """Names of the reference's parameters."""
        model = self._pair.prepared.module.model
        return tuple(path for path, _ in model.named_parameters())

    def is_same(self, mixed: InputSet) -> bool:
        """Return whether the outputs stay within the tolerance."""
        actual = mixed.run()
        return len(actual) == len(self._expected) and all(
            matches(a.to(e.tensor.dtype), e, self._tolerance.of(i))
            for i, (a, e) in enumerate(zip(actual, self._expected, strict=True))
        )

    def has_same_input(self, index: int) -> bool:
        """Return whether both sets have the same value of an input."""
        return same_values(self.draw().inputs[index], self.draw_other().inputs[index])

    def with_input(self, index: int) -> bool:
        """Return whether the other set's value of one input leaves the outputs as they are."""
        return self.is_same(self._mixed(index, self.draw_other().inputs[index]))

    def with_parameters(self, paths: Sequence[str]) -> bool:
        """Return whether the other set's values of parameters leave the outputs as they are."""
        return self.is_same(self._with_state(paths))

    def with_part(self, index: int, axis: int, start: int, stop: int) -> bool:
        """Return whether another draw's values in a part of an input change nothing."""
        changed = self.draw().inputs[index].clone()
        other = self.draw_other().inputs[index]
        changed.narrow(axis, start, stop - start).copy_(other.narrow(axis, start, stop - start))
        return self.is_same(self._mixed(index, changed))

    def _mixed(self, index: int, value: torch.Tensor) -> InputSet:
        first = self.draw()
        inputs = [*first.inputs]
        inputs[index] = value
        return first.with_values(inputs, first.state)

    def _with_state(self, paths: Sequence[str]) -> InputSet:
        first, other = self.draw(), self.draw_other().state
        return first.with_values(first.inputs, first.state | {path: other[path] for path in paths})

    def on_other_draws(self) -> Iterator[Self]:
        """Yield the same swap with further draws, for what a draw may hide by chance."""
        pair = self._pair
        for seed in range(_MORE_SEEDS):
            drawn = pair.prepared.input_set(seed)
            other = dataclasses.replace(pair, draws=(_held(drawn), pair.draws[1]))
            yield type(self)(other, self._tolerance)


def _held(drawn: InputSet) -> Callable[[], InputSet]:
    return lambda: drawn


def _idle_inputs(swap: _InputSwap, found: Screening) -> Iterator[str]:
    for index, name in enumerate(swap.input_names):
        if swap.has_same_input(index):
            found.warnings.append(f"get_inputs() gives the same {name!r} under every seed")
        elif swap.with_input(index):
            yield name


def _idle_parameters(swap: _InputSwap) -> Iterator[str]:
    paths = swap.parameter_paths
    if not paths:
        return
    if swap.with_parameters(paths):
        yield "the output hardly depends on the weights: a kernel that ignores them passes"
        return
    for path in paths if len(paths) > 1 else ():
        if time.monotonic() > swap.deadline:
            return
        if swap.with_parameters([path]):
            yield (
                f"the output hardly depends on parameter {path!r}: a kernel that ignores it passes"
            )


def _idle_parts(swap: _InputSwap, idle: Sequence[str]) -> Iterator[str]:
    """Yield warnings for parts of inputs, by their first and last axes."""
    for index, name in enumerate(swap.input_names):
        if name in idle or swap.has_same_input(index):
            continue
        shape = swap.draw().inputs[index].shape
        for axis in sorted({0, len(shape) - 1}) if shape else ():
            for start, stop in _parts(shape[axis]):
                if time.monotonic() > swap.deadline:
                    return
                part = (index, axis, start, stop)
                if swap.with_part(*part) and all(
                    other.with_part(*part) for other in swap.on_other_draws()
                ):
                    yield (
                        f"the output hardly depends on {start}:{stop} of axis {axis} of input"
                        f" {name!r}: a kernel that does not read it passes"
                    )


def _parts(size: int) -> Iterator[tuple[int, int]]:
    edges = sorted({size * part // _PARTS for part in range(_PARTS + 1)})
    yield from itertools.pairwise(edges)


def _idle_outputs(pair: DrawPair, tolerance: Tolerance) -> Iterator[str]:
    """Yield warnings for slices of an output that are the same whatever the inputs are."""
    few = pair.draws[1:]
    many = [partial(pair.prepared.input_set, seed) for seed in range(_MORE_SEEDS)]
    for index, output in enumerate(pair.expected):
        which = f"output {index}" if len(pair.expected) > 1 else "the output"
        for axis, size in enumerate(output.tensor.shape if output.tensor.ndim > 1 else ()):
            idle = _same_places(pair, index, axis, tolerance, few)
            # A mask may leave a place zero in two draws by chance, hardly in all of many.
            if not idle or not _WARNED_SHARE * size <= len(idle) < size:
                continue
            if idle == _same_places(pair, index, axis, tolerance, many):
                yield (
                    f"{which} is the same at {len(idle)} of {size} places of axis {axis} (the"
                    f" first at {min(idle)}) whatever the inputs are: nothing is checked there"
                )


def _same_places(
    pair: DrawPair,
    index: int,
    axis: int,
    tolerance: Tolerance,
    draws: Sequence[Callable[[], InputSet]],
) -> set[int]:
    """Return the places of an axis where all of `draws` give what the first set gives."""
    one = pair.expected[index]
    bound = one.bound(tolerance.of(index))
    others = tuple(other for other in range(one.tensor.ndim) if other != axis)
    same = torch.ones(one.tensor.shape[axis], dtype=torch.bool, device=bound.device)
    for draw in draws:
        two = draw().expected()[index]
        error = (one.tensor.float() - two.float()).abs_()
        close = error.le(bound) | (computable(one.tensor).isnan() & computable(two).isnan())
        same &= close.all(dim=others)
        if not bool(same.any()):
            break
    return set(same.nonzero().flatten().tolist())
