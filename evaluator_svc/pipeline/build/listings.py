"""The compiler's results on demand: PTX and machine code as text, and object code."""

import base64
from collections.abc import Sequence
from typing import Final

from evaluator_svc.messages.locked import WorkloadNames
from evaluator_svc.pipeline.build.build import BuildResult
from evaluator_svc.tools.disassemble import disassemble
from kernel_foundry.domain.evaluation import Listing, ObjectCode

_MAX_CHARACTERS: Final = 4 << 20


def listings(built: BuildResult) -> tuple[Listing, ...]:
    """Return the listings of every unit; none where object code has no assembly (SPIR-V)."""
    found: list[Listing] = []
    for unit in built.units:
        if not unit.assembly:
            continue
        text = unit.assembly.decode("utf-8", errors="replace")[:_MAX_CHARACTERS]
        found.append(Listing(form="ptx", text=text))
        machine_code = disassemble(unit.code)
        if machine_code is not None:
            found.append(Listing(form="sass", text=machine_code))
    return tuple(found)


def object_codes(
    built: BuildResult, unit_of_workload: Sequence[int], names: Sequence[WorkloadNames]
) -> tuple[ObjectCode, ...]:
    """Return the object code of every unit that was built, with the workloads that it is for."""
    found = []
    for index, unit in enumerate(built.units):
        if index in built.left_out:
            continue
        pairs = zip(unit_of_workload, names, strict=True)
        workloads = tuple(named.workload for number, named in pairs if number == index)
        code = base64.b64encode(unit.code).decode("ascii")
        found.append(ObjectCode(workloads=workloads, code=code))
    return tuple(found)
