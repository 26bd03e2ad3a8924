"""What the compiler made, as text: PTX, and machine code where a disassembler is found."""

from typing import Final

from evaluator_svc import cubin
from evaluator_svc.pipeline.build import Built
from kernel_foundry.domain.evaluation import Listing

_MAX_CHARACTERS: Final = 4 << 20


def listings(built: Built) -> tuple[Listing, ...]:
    """Return the listings of every unit; none where object code has no assembly (SPIR-V)."""
    found: list[Listing] = []
    for code, assembly in zip(built.codes, built.assemblies, strict=True):
        if not assembly:
            continue
        text = assembly.decode("utf-8", errors="replace")[:_MAX_CHARACTERS]
        found.append(Listing(form="ptx", text=text))
        machine_code = cubin.disassemble(code)
        if machine_code is not None:
            found.append(Listing(form="sass", text=machine_code))
    return tuple(found)
