"""Makes from an admission the name table and the device limits that a plan is bound to."""

import ast
from collections.abc import Iterable

from kernel_foundry.domain.admission import NamedScalar, NamedTensor
from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.plan.names import NameTable, ScalarName, TensorName
from kernel_foundry.plan.values import DeviceLimits


def name_table(tensors: Iterable[NamedTensor], scalars: Iterable[NamedScalar] = ()) -> NameTable:
    """Return the name table of a workload with these tensors and scalars.

    Raises:
        ValueError: a name occurs twice, or a dtype, a size or a literal is none.
        SyntaxError, TypeError, MemoryError, RecursionError: a literal is none, as `literal_eval`.
    """
    return NameTable(
        tensors=tuple(
            TensorName(name=t.name, dtype=t.dtype, shape=t.shape, role=t.role.value, path=t.path)
            for t in tensors
        ),
        scalars=tuple(ScalarName(name=s.name, value=ast.literal_eval(s.literal)) for s in scalars),
    )


def device_limits(device: DeviceSpec) -> DeviceLimits:
    """Return the device's facts that a plan may read, and the limits of its launches."""
    return DeviceLimits(
        compute_units=device.compute_units,
        sub_group_size=device.sub_group_size,
        shared_bytes=device.shared_bytes,
        max_block=device.max_block,
        memory_bytes=device.memory_bytes,
    )
