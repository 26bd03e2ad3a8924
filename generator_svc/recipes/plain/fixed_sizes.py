"""Sizes that kernels have as numbers: the plan refuses a workload in which they are others."""

from dataclasses import dataclass

from kernel_foundry.domain.admission import Admission, TensorRole, WorkloadAdmission


@dataclass(frozen=True, slots=True)
class FixedSize:
    """A number of a module that is the same in all graphs that were translated."""

    name: str
    """Of the tensor or number in the plan's name table."""
    expression: str
    """What a plan compares."""
    value: int

    @property
    def condition(self) -> str:
        """What the plan requires."""
        return f"{self.expression} == {self.value}"


def fixed_sizes(admission: Admission) -> tuple[FixedSize, ...]:
    """Return sizes by which a plan knows the workloads that its kernels are not made for.

    A module may be made with other sizes in a generated workload without a graph, so nothing that
    was translated shows that these can change. One difference for each such workload is enough.
    """
    translated = admission.with_graphs.workloads
    first, *rest = [_sizes(workload) for workload in translated]
    alike = [size for size in first if all(size in sizes for sizes in rest)]
    found: list[FixedSize] = []
    for workload in admission.workloads:
        own = _sizes(workload)
        names = {size.name for size in own}
        if workload not in translated and all(size in own for size in found):
            found += [size for size in alike if size.name in names and size not in own][:1]
    return tuple(found)


def _sizes(workload: WorkloadAdmission) -> list[FixedSize]:
    weights = [t for t in workload.tensors if t.role in (TensorRole.PARAMETER, TensorRole.BUFFER)]
    sides = [
        FixedSize(tensor.name, f"{tensor.name}.shape[{axis}]", size)
        for tensor in weights
        for axis, size in enumerate(tensor.shape)
    ]
    numbers = [
        FixedSize(scalar.name, scalar.name, int(scalar.literal))
        for scalar in workload.scalars
        if scalar.literal.removeprefix("-").isdecimal()
    ]
    return sides + numbers
