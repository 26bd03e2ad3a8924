"""Whether a reference decides what becomes of NaN, or of infinity, by a trial of its operators.

An operator decides that where it tells NaN, or infinity, from every number (`isnan`, `x == x`), or
gives what else there is in place of NaN: the other operand (`fmax`), the rest of a row (`nansum`),
or a number of its own where it changes no number (`nan_to_num`). One that only compares numbers
(`x > 0`, `sign`, `histc`), or puts them in order, decides nothing: kernels that compare the other
way round are honest.
"""

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from itertools import product
from typing import Any, Final, Self

import torch
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from evaluator_svc.judge.reference.followed_inputs import FollowedInputs, tensors_in
from evaluator_svc.judge.reference.formats import FLOAT8
from evaluator_svc.judge.reference.operators import OperatorMode, given_arguments

_MOST_ELEMENTS: Final = 1 << 12
"""About as many, from the first axis on, of the operands that are tried."""
_MOST_OPERANDS: Final = 2
_MOST_COPIED: Final = 1 << 22
"""Elements of all tensors of a call that is tried: a matrix of weights cannot be shortened."""
_MOST_TRIALS: Final = 4
"""Of an operator with operands alike: a loop may run it thousands of times."""
_PLACES: Final = 8
"""Places at which the only number is tried: what picks some elements finds it at a few."""
_SEED: Final = 1
_REFUSALS: Final = (RuntimeError, IndexError, TypeError, ValueError)
"""What PyTorch raises where an operator does not take an operand of another length."""


class Missing(Enum):
    """What stands for a number that is not there."""

    NAN = math.nan
    INFINITY = math.inf


_NOTHING: Final = frozenset[Missing]()


class AskedOfMissing(OperatorMode):
    """While active, tries the operators that run, on the host and on values of its own.

    Args:
        inputs: Those that the reference runs on.
    """

    def __init__(self, inputs: Sequence[torch.Tensor]) -> None:
        super().__init__()
        self.found = set[tuple[int, Missing]]()
        """What an operator decides about, with the input, by index, that this follows from."""
        self._most = len(Missing) * len(inputs)
        self._followed = FollowedInputs(inputs)
        self._tried = Counter[Hashable]()

    def run(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run the operator, after it was tried."""
        given = given_arguments(func, args, kwargs)
        sources = self._followed.sources_of(given)
        if sources and not _is_view(func) and len(self.found) < self._most:
            self.found |= set(product(sources, self._tried_on(func, args, kwargs)))
        result = func(*args, **kwargs)
        if sources:
            self._followed.follow(func, given, result, sources)
        return result

    def _tried_on(
        self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> frozenset[Missing]:
        places = _operands(args, kwargs)
        key = (func, places)
        self._tried[key] += 1
        may_be_tried = 0 < len(places) <= _MOST_OPERANDS and self._tried[key] <= _MOST_TRIALS
        call = _Call.of(func, args, kwargs, places) if may_be_tried else None
        if call is not None:
            with suppress(*_REFUSALS):  # it decides nothing that could be seen then
                return _decided(call)
        return _NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """A call of an operator, of few elements."""

    func: Any
    leaves: Sequence[Any]
    """Arguments one after the other, tensors on the host."""
    spec: Any
    """Their structure."""
    operands: Sequence[Sequence[int]]
    """Places among them of each tensor of floats; several where it is given twice."""

    @classmethod
    def of(
        cls,
        func: Any,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        operands: Sequence[Sequence[int]],
    ) -> Self | None:
        """Return a call as it runs; None: there is nothing to try it on."""
        leaves, spec = tree_flatten((args, dict(kwargs)))
        tensors = tensors_in(leaves)
        if any(leaf.dtype in FLOAT8 or not leaf.numel() for leaf in tensors):
            return None
        largest = max(tensors, key=torch.Tensor.numel)
        short = [_shortened(x, largest) if isinstance(x, torch.Tensor) else x for x in leaves]
        if sum(tensor.numel() for tensor in tensors_in(short)) > _MOST_COPIED:
            return None
        # Copies, so that an operator that works in place changes nothing of the reference's.
        short = [x.detach().cpu().clone() if isinstance(x, torch.Tensor) else x for x in short]
        return cls(func=func, leaves=short, spec=spec, operands=operands)

    def operand(self, number: int) -> torch.Tensor:
        """Return one of the tensors of floats."""
        tensor: torch.Tensor = self.leaves[self.operands[number][0]]
        return tensor

    def on(self, *values: torch.Tensor) -> torch.Tensor | None:
        """Return the first result where the operands have other values; None: it is no tensor."""
        leaves = list(self.leaves)
        for places, value in zip(self.operands, values, strict=True):
            given = value.clone()
            for place in places:
                leaves[place] = given
        args, kwargs = tree_unflatten(leaves, self.spec)
        result = next(iter(tree_leaves(self.func(*args, **kwargs))), None)
        return result if isinstance(result, torch.Tensor) else None


def _is_view(func: Any) -> bool:
    """Return whether an operator only looks at its operand in another way."""
    schema = func._schema
    return not schema.is_mutable and any(r.alias_info is not None for r in schema.returns)


def _operands(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[tuple[int, ...], ...]:
    """Return the places, among all arguments, of each tensor of floats."""
    places = dict[Hashable, list[int]]()
    for place, leaf in enumerate(tree_leaves((args, dict(kwargs)))):
        if isinstance(leaf, torch.Tensor) and leaf.is_floating_point():
            places.setdefault((leaf.data_ptr(), leaf.shape, leaf.stride()), []).append(place)
    return tuple(map(tuple, places.values()))


def _shortened(tensor: torch.Tensor, largest: torch.Tensor) -> torch.Tensor:
    if tensor.ndim == largest.ndim > 0 and len(tensor) == len(largest):
        return tensor[: max(_MOST_ELEMENTS * len(largest) // largest.numel(), 1)]
    return tensor


def _decided(call: _Call) -> frozenset[Missing]:
    """Return what the operator decides about."""
    numbers = [_numbers(call.operand(i), _SEED + i) for i in range(len(call.operands))]
    result = call.on(*numbers)
    if result is None:
        return _NOTHING
    if len(numbers) > 1:
        is_other = result.is_floating_point() and _gives_the_other(call, *numbers)
        return frozenset({Missing.NAN}) if is_other else _NOTHING
    (values,) = numbers
    if result.dtype is torch.bool:
        return _told(call, values, result)
    if not result.is_floating_point():
        return _NOTHING
    if result.shape == values.shape:
        return _filled(call, values, result)
    is_left_out = result.numel() < values.numel() and _leaves_out(call, values)
    return frozenset({Missing.NAN}) if is_left_out else _NOTHING


def _numbers(like: torch.Tensor, seed: int) -> torch.Tensor:
    """Return numbers of both signs and of all magnitudes, the largest and the least among them."""
    generator = torch.Generator().manual_seed(seed)
    largest = torch.finfo(like.dtype).max
    most = int(math.log2(largest)) - 1
    share = torch.rand(like.shape, generator=generator, dtype=torch.float64)
    sign = torch.randint(0, 2, like.shape, generator=generator) * 2.0 - 1.0
    exponents = torch.randint(1 - most, most, like.shape, generator=generator)
    numbers = (torch.ldexp((0.5 + 0.5 * share), exponents) * sign).to(like.dtype)
    ends = numbers.view(-1)[:2]  # which no bound is beyond
    ends.copy_(torch.tensor([largest, -largest])[: len(ends)])
    return numbers


def _told(call: _Call, numbers: torch.Tensor, answers: torch.Tensor) -> frozenset[Missing]:
    """Return what has the opposite of the answer that all numbers have.

    Asked of few numbers, all of one sign might be on one side of a bound.
    """
    if numbers.numel() < _PLACES or bool(answers.any() != answers.all()):
        return _NOTHING
    others = {missing: call.on(torch.full_like(numbers, missing.value)) for missing in Missing}
    return frozenset(
        missing
        for missing, other in others.items()
        if other is not None and bool((other != answers).all())
    )


def _filled(call: _Call, numbers: torch.Tensor, same: torch.Tensor) -> frozenset[Missing]:
    """Return what does not stay, where numbers do."""
    if not torch.equal(same, numbers.to(same.dtype)):
        return _NOTHING
    nan, infinite = (call.on(torch.full_like(numbers, missing.value)) for missing in Missing)
    assert nan is not None
    assert infinite is not None
    stays = {Missing.NAN: nan.isnan().any(), Missing.INFINITY: infinite.isinf().any()}
    return frozenset(missing for missing, any_stays in stays.items() if not any_stays)


def _leaves_out(call: _Call, numbers: torch.Tensor) -> bool:
    """Return whether a number among nothing but NaN is a result, wherever it is."""
    generator = torch.Generator().manual_seed(_SEED)
    drawn = torch.randint(0, numbers.numel(), (_PLACES,), generator=generator).tolist()
    for place in (0, numbers.numel() - 1, *drawn):
        values = torch.full_like(numbers, torch.nan)
        values.view(-1)[place] = number = numbers.view(-1)[place]
        result = call.on(values)
        if result is None or not bool((result == number).any()):
            return False
    return True


def _gives_the_other(call: _Call, one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether the result is either of two operands where its counterpart is NaN."""
    first = call.on(one, torch.full_like(other, torch.nan))
    second = call.on(torch.full_like(one, torch.nan), other)
    if first is None or second is None:
        return False
    return torch.equal(first, one.expand_as(first)) and torch.equal(second, other.expand_as(second))
