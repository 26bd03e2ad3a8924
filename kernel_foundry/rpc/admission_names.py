"""Whether an admission from afar names what a task's can; an evaluator may be somebody else's.

Its names become code: of plans, and of exported files in several languages.
"""

import re
from collections.abc import Iterator
from typing import Final

from kernel_foundry.domain.admission import Admission, NamedTensor
from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.name import LONGEST_WORKLOAD, check_name
from kernel_foundry.errors import InvalidArgumentError, MalformedAnswerError
from kernel_foundry.plan.dtypes import DTYPE_BYTES
from kernel_foundry.shown_value import shown

_LONGEST: Final = 200
_ARCHITECTURE: Final = re.compile(r"[A-Za-z0-9_.+-]{0,100}")


def require_names(admission: Admission) -> None:
    """Refuse names that no task and no device has.

    Raises:
        MalformedAnswerError: it says which.
    """
    fault = next(_faults(admission), "")
    if fault:
        raise MalformedAnswerError(
            f"the evaluator's answer on the task names {fault}: it is broken, of another version, "
            "or not to be trusted"
        )


def _faults(admission: Admission) -> Iterator[str]:
    yield from _device_faults(admission.device)
    for workload in admission.workloads:
        if not _is_line(workload.workload, LONGEST_WORKLOAD):
            yield f"a workload {shown(workload.workload)}"
        for tensor in workload.tensors:
            yield from _tensor_faults(tensor)
        for scalar in workload.scalars:
            if not _is_identifier(scalar.name):
                yield f"a scalar {shown(scalar.name)}"


def _device_faults(device: DeviceSpec) -> Iterator[str]:
    if not _ARCHITECTURE.fullmatch(device.architecture):
        yield f"an architecture {shown(device.architecture)}"
    for text in (device.id, device.name):
        if not _is_line(text, _LONGEST):
            yield f"a device {shown(text)}"


def _tensor_faults(tensor: NamedTensor) -> Iterator[str]:
    if not _is_identifier(tensor.name):
        yield f"a tensor {shown(tensor.name)}"
    if tensor.dtype not in DTYPE_BYTES:
        yield f"a type {shown(tensor.dtype)}"


def _is_identifier(text: str) -> bool:
    return len(text) <= _LONGEST and text.isidentifier()


def _is_line(text: str, longest: int) -> bool:
    try:
        check_name(text, "name", longest)
    except InvalidArgumentError:
        return False
    return True
