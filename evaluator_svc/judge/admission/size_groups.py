"""Which sizes of a task can change, and which of them have to change together.

The module is tried on shapes alone, which costs no memory: each place of a size with a multiple of
its value, so that whatever divides it still does. Within one tensor a place that runs alone moves
alone, as the width of a picture whose height has the same name; others move with those that are
equal.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

import torch
from torch.utils._pytree import tree_leaves

from evaluator_svc.judge.inputs.input_set import flatten_outputs
from evaluator_svc.judge.inputs.prepared_workload import PREPARATION_SEED, PreparedWorkload
from evaluator_svc.judge.reference.arguments import read_arguments
from evaluator_svc.judge.reference.task_module import TaskModule
from evaluator_svc.sizes.argument_numbers import other_values, values_beyond, values_further
from evaluator_svc.sizes.generated_workloads import SMALL, SizeGroup
from evaluator_svc.sizes.size_places import SizePlace, size_places
from kernel_foundry.domain.task import Size, Task, Workload
from kernel_foundry.errors import TaskInvalidError
from kernel_foundry.task_source import parse_reference, size_constants

_FACTORS: Final = (2, 3, 5, 7, 11, 13, 17, 19)
"""By which places that are told apart are multiplied, again from the start beyond these."""
_MOST_PLACES: Final = 40
_MOST_PAIRED: Final = 4
"""Places of one size of which pairs are tried."""
_MOST_GROWTH: Final = 2
"""Times the usual elements of outputs: a number that decides how many there are is a size."""
_HOST_BYTES: Final = 1 << 22
"""Of a workload that is tried on the host where shapes alone do not do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeGroups:
    """What can change in a task, and what cannot."""

    groups: tuple[SizeGroup, ...] = ()
    numbers: tuple[Size, ...] = ()
    """Other values of numbers among forward's arguments."""
    beyond: tuple[tuple[Size, ...], ...] = ()
    """Values of each of these that are further from the usual, the best first."""
    further: tuple[tuple[Size, ...], ...] = ()
    """Values of each that are as far as they go."""
    fixed: tuple[str, ...] = ()
    """Sizes of inputs with which the module runs at one value only, as "get_inputs: 1024"."""
    joint: tuple[str, ...] = ()
    """Sizes of several tensors that change together, though the module runs where some do alone."""


def find_size_groups(task: Task, first: PreparedWorkload) -> SizeGroups:
    """Return the sizes of a task that can change, found on its first workload.

    Raises:
        TaskInvalidError: the reference is no Python.
    """
    return _Search(task, first).found()


class _Search:
    def __init__(self, task: Task, first: PreparedWorkload) -> None:
        self._task = task
        self._first = first.workload
        tree = parse_reference(task.reference, file_name=task.name)
        own = size_constants(tree)
        timed = [
            own | {size.name: size.value for size in workload.sizes}
            for workload in task.workloads
            if not workload.held_out
        ]
        self._timed = timed[0]
        self._largest = {name: max(sizes[name] for sizes in timed) for name in own}
        places = size_places(tree)
        self._places = places if len(places) <= _MOST_PLACES else tuple(p for p in places if p.name)
        self._constants = first.shared_set(PREPARATION_SEED).arguments.constants
        self._devices = [torch.device("meta")]
        if first.sizes.set_bytes <= _HOST_BYTES:
            self._devices.append(torch.device("cpu"))
        self._moved: dict[str, int] = {}
        self._joint: list[str] = []

    def found(self) -> SizeGroups:
        device = next((d for d in self._devices if self._runs({}, d)), None)
        if device is None:
            return SizeGroups(
                groups=self._named(),
                numbers=tuple(values[0] for values in self._numbers(None, other_values)),
                beyond=self._numbers(None, values_beyond),
            )
        self._devices = [device]
        deciding = self._deciding()
        classes = self._classes(deciding)
        movable = [keys for members in classes for keys in self._movable(members)]
        movable += self._alike([members[0] for members in classes], movable)
        is_free = self._run_odd(movable)
        groups = [
            SizeGroup(
                keys=keys,
                value=self._value(keys[0]),
                takes_odd=is_free or self._run_odd([keys]),
            )
            for keys in movable
        ]
        moving = {key for keys in movable for key in keys}
        fixed = dict.fromkeys(
            place.name or f"{place.value} in {place.key.partition('#')[0]}"
            for place in deciding
            if place.key not in moving and place.name not in moving
        )
        return SizeGroups(
            groups=tuple(groups),
            numbers=tuple(values[0] for values in self._numbers(device, other_values)),
            beyond=self._numbers(device, values_beyond),
            further=self._numbers(device, values_further, most=_MOST_GROWTH * self._count({})),
            fixed=tuple(fixed),
            joint=tuple(self._joint),
        )

    def _run_odd(self, movable: Sequence[tuple[str, ...]]) -> bool:
        """Return whether the module runs with odd sizes for all of these."""
        odd: dict[str, int] = {}
        for step, keys in enumerate(movable):
            value = self._value(keys[0])
            odd |= dict.fromkeys(keys, value + 1 + value % 2 + 2 * step)
        return self._runs(odd)

    def _deciding(self) -> list[SizePlace]:
        """Return the places that decide the shape of an input."""
        usual = self._input_shapes({})
        return [
            place
            for place in self._places
            if not place.is_initial
            and self._input_shapes({place.key: 2 * self._value(place.key)}) != usual
        ]

    def _classes(self, deciding: Sequence[SizePlace]) -> list[list[tuple[str, ...]]]:
        """Return places of one size each: those to be told apart, and then what moves as one."""
        classes: list[list[tuple[str, ...]]] = []
        names = {place.name for place in deciding}
        for name, value in self._timed.items():
            if name in names or value >= SMALL:
                own = [place.key for place in deciding if place.name == name]
                classes.append([(name,), *((key,) for key in own)])
        literals = [place for place in deciding if not place.name]
        for value in dict.fromkeys(place.value for place in literals):
            own = [place.key for place in literals if place.value == value]
            alike = [p.key for p in self._places if p.is_initial and p.value == value]
            classes.append([(*own, *alike), *((key,) for key in own)])
        return classes

    def _movable(self, members: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
        """Return what of one size moves by itself, told apart as far as the module runs with it."""
        whole, *places = members
        is_named = "#" not in whole[0]
        tensors = {place.tensor for place in self._places if (place.key,) in places}
        if len(tensors) > 1:
            # What has one name in several tensors, or one number, is one size to who reads it.
            joint = whole if is_named else tuple(key for keys in places for key in keys)
            if self._runs_apart(places):
                self._joint.append(self._name(whole))
            return next(([keys] for keys in (joint, whole) if self._accepts([keys])), [])
        if is_named and len(places) > 1 and self._accepts([whole, *places[1:]]):
            return [whole, *places[1:]]
        if not is_named and self._accepts(places):
            return places
        apart = [keys for keys in places if self._accepts([keys])] if len(places) > 1 else []
        rest = [keys for keys in places if keys not in apart]
        if 2 < len(rest) <= _MOST_PAIRED:
            for one, other in combinations(rest, 2):
                if one in rest and other in rest and self._accepts([(*one, *other)]):
                    apart.append((*one, *other))
                    rest = [keys for keys in rest if keys not in (one, other)]
        if places and not rest:
            return apart
        held = {key for keys in apart for key in keys}
        together = [whole] if is_named else [tuple(key for keys in rest for key in keys), whole]
        for keys in together:
            left = tuple(key for key in keys if key not in held)
            if self._accepts([left]):
                return [*apart, left]
        return apart

    def _runs_apart(self, places: Sequence[tuple[str, ...]]) -> bool:
        """Return whether the module runs where one or two of several places have another value."""
        if len(places) > _MOST_PAIRED:
            return False
        chosen = [*combinations(places, 1), *(combinations(places, 2) if len(places) > 2 else ())]
        several = ([key for keys in some for key in keys] for some in chosen)
        return any(self._runs({k: _FACTORS[0] * self._value(k) for k in keys}) for keys in several)

    def _name(self, keys: tuple[str, ...]) -> str:
        """Return what to call a size by."""
        return (
            keys[0]
            if "#" not in keys[0]
            else f"{self._value(keys[0])} in {keys[0].partition('#')[0]}"
        )

    def _alike(
        self, wholes: Sequence[tuple[str, ...]], movable: Sequence[tuple[str, ...]]
    ) -> list[tuple[str, ...]]:
        """Return sizes that move with those that equal them, of those that do not move alone."""
        moving = {key for keys in movable for key in keys}
        stuck = [keys for keys in wholes if moving.isdisjoint(keys)]
        found = []
        for value in dict.fromkeys(self._value(keys[0]) for keys in stuck):
            equal = [keys for keys in stuck if self._value(keys[0]) == value]
            joint = tuple(key for keys in equal for key in keys)
            if len(equal) > 1 and self._accepts([joint]):
                found.append(joint)
        return found

    def _accepts(self, several: Sequence[tuple[str, ...]]) -> bool:
        """Return whether these move, each by its own factor, beside all that was accepted."""
        moved = dict(self._moved)
        for keys in several:
            factor = _FACTORS[len(moved) % len(_FACTORS)]
            moved |= {key: factor * self._value(key) for key in keys}
        if not self._runs(moved):
            return False
        self._moved = moved
        return True

    def _value(self, key: str) -> int:
        if key in self._largest:
            return self._largest[key]
        place = next(place for place in self._places if place.key == key)
        return self._largest[place.name] if place.name else place.value

    def _numbers(
        self,
        device: torch.device | None,
        values: Callable[[str, object], tuple[Size, ...]],
        *,
        most: float = math.inf,
    ) -> tuple[tuple[Size, ...], ...]:
        """Return what each argument may be, where it may be anything else.

        Args:
            device: Where the module is tried; None: it is not.
            values: Gives other values of an argument, the best first.
            most: How many elements outputs may have.
        """
        found = (
            tuple(
                other
                for other in values(name, value)
                if device is None or 0 <= self._count({other.name: other.value}) <= most
            )
            for name, value in self._constants
        )
        return tuple(filter(None, found))

    def _named(self) -> tuple[SizeGroup, ...]:
        """Return the named sizes of extents, where nobody can say what the module runs with."""
        return tuple(
            SizeGroup(keys=(name,), value=value)
            for name, value in self._largest.items()
            if value >= SMALL
        )

    def _input_shapes(self, sizes: Mapping[str, int]) -> list[torch.Size] | None:
        module = self._module(sizes, torch.device("meta"))
        try:
            return _shapes(module.input_values(PREPARATION_SEED))
        except TaskInvalidError:
            return None
        finally:
            module.close()

    def _runs(self, sizes: Mapping[str, int], device: torch.device | None = None) -> bool:
        return self._count(sizes, device) >= 0

    def _count(self, sizes: Mapping[str, int], device: torch.device | None = None) -> int:
        """Return how many elements the outputs have; -1 where the module does not run."""
        module = self._module(sizes, device or self._devices[0])
        try:
            values = module.input_values(PREPARATION_SEED)
            arguments = read_arguments(module.model, values, module.workload.sizes)
            with module.user_code("forward()"), torch.no_grad():
                outputs = module.model(*arguments.values(arguments.tensors))
                return sum(output.numel() for output in flatten_outputs(outputs))
        except TaskInvalidError:
            return -1
        finally:
            module.close()

    def _module(self, sizes: Mapping[str, int], device: torch.device) -> TaskModule:
        given = {size.name: size.value for size in self._first.sizes} | dict(sizes)
        workload = Workload(
            name="sizes", sizes=tuple(Size(name=n, value=v) for n, v in given.items())
        )
        return TaskModule(self._task, workload, device)


def _shapes(values: Iterable[Any]) -> list[torch.Size]:
    return [value.shape for value in tree_leaves(values) if isinstance(value, torch.Tensor)]
