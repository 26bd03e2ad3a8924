"""What the compiler made, as text: PTX, and machine code where a disassembler is found."""

from typing import Final

from evaluator_svc.pipeline.build import BuildResult
from evaluator_svc.tools.disassemble import disassemble
from kernel_foundry.domain.evaluation import Listing

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
