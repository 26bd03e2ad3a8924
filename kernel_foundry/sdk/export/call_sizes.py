"""The numbers of a task that are arguments of an exported C function: those that vary.

A number is a dimension of a tensor, or a scalar of the module. Numbers that are alike in each
workload that was judged are one argument.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kernel_foundry.domain.admission import WorkloadAdmission
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.plan.from_admission import name_table
from kernel_foundry.plan.names import ScalarValue
from kernel_foundry.sdk.export.winner import Winner
from kernel_foundry.task_source import parse_reference, size_constants

FIXED: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class CallNumber:
    """One number of the task."""

    fixed: int | float | bool | str
    """Its value in the first workload."""
    size: int = FIXED
    """Position among the sizes; FIXED where it never changes."""


class CallSizes:
    """The sizes of a call of some winners of one task.

    Raises:
        InvalidArgumentError: a text of the module is not always alike, which no number tells.
    """

    def __init__(self, winners: Sequence[Winner]) -> None:
        task = winners[0].record.task
        known = size_constants(parse_reference(task.reference, file_name=task.name))
        self._owners: list[Winner] = []
        self._workloads: list[WorkloadAdmission] = []
        named: list[Mapping[str, int]] = []
        for winner in winners:
            for workload in winner.built:
                self._owners.append(winner)
                self._workloads.append(workload)
                named.append(known | winner.sizes(workload))
        self._task_sizes = {tuple(sizes[n] for sizes in named): n for n in reversed(list(named[0]))}
        self._found: dict[tuple[int | float, ...], str] = {}
        first = self._workloads[0]
        self.shapes: dict[str, tuple[CallNumber, ...]] = {
            tensor.name: tuple(
                self._number(
                    f"{tensor.name}_{i}", [w.tensors[at].shape[i] for w in self._workloads]
                )
                for i in range(len(tensor.shape))
            )
            for at, tensor in enumerate(first.tensors)
        }
        """Of each tensor."""
        tables = [name_table((), w.scalars).scalars for w in self._workloads]
        self.scalars: dict[str, CallNumber | tuple[CallNumber, ...]] = {
            scalar.name: self._scalar(scalar.name, [table[at].value for table in tables])
            for at, scalar in enumerate(tables[0])
        }
        """Of each scalar of the module; several numbers for a tuple."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the sizes, in order."""
        return tuple(self._found.values())

    def is_real(self, name: str) -> bool:
        """Return whether a size is no whole number."""
        return any(isinstance(value, float) for value in self._values(name))

    def value(self, name: str) -> float:
        """Return a size of the first workload."""
        return self._values(name)[0]

    def judged(self, name: str, winner: Winner) -> tuple[float, float]:
        """Return the least and the largest value of a size that a winner was judged on."""
        pairs = zip(self._values(name), self._owners, strict=True)
        values = [value for value, owner in pairs if owner is winner]
        return min(values), max(values)

    def _values(self, name: str) -> tuple[int | float, ...]:
        return next(values for values, known in self._found.items() if known == name)

    def _scalar(
        self, name: str, values: Sequence[ScalarValue]
    ) -> CallNumber | tuple[CallNumber, ...]:
        if isinstance(values[0], tuple):
            items: list[Any] = [v if isinstance(v, tuple) else (v,) for v in values]
            if len(set(map(len, items))) > 1:
                raise _varies(name)
            return tuple(
                self._number(f"{name}_{i}", [item[i] for item in items])
                for i in range(len(items[0]))
            )
        return self._number(name, list(values))

    def _number(self, name: str, values: Sequence[Any]) -> CallNumber:
        if all(value == values[0] for value in values):
            return CallNumber(fixed=values[0])
        if not all(isinstance(value, int | float) for value in values):
            raise _varies(name)
        if any(isinstance(value, float) for value in values):
            values = [float(value) for value in values]
        key = tuple(values)
        if key not in self._found:
            wanted = self._task_sizes.get(key, name)
            tensors = {tensor.name for tensor in self._workloads[0].tensors}
            taken = tensors | set(self._found.values())
            while wanted in taken:
                wanted += "_"
            self._found[key] = wanted
        return CallNumber(fixed=values[0], size=list(self._found).index(key))


def _varies(name: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{name} of the module is not the same in all workloads, and is not a number that a C"
        " function could take: export --to torch",
        field="to",
    )
