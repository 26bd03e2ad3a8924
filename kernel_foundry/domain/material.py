"""Material: code that a run starts from, shown to models and never built or run as it is."""

from dataclasses import dataclass
from typing import Final

MOST_MATERIALS: Final = 8
"""Most materials of one run."""

LONGEST_MATERIAL: Final = 32 * 1024
"""Characters of one material's text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """Code that a model is shown to start from."""

    name: str
    """Where it comes from, such as "attention.cu"."""
    text: str
    """At most `LONGEST_MATERIAL` characters."""


def material_fault(materials: tuple[Material, ...]) -> str:
    """Return the fault of a run's materials; "" if there is none."""
    if len(materials) > MOST_MATERIALS:
        return f"{len(materials)} materials, expected at most {MOST_MATERIALS}"
    longest = max((len(m.text) for m in materials), default=0)
    if longest > LONGEST_MATERIAL:
        return f"a material of {longest} characters, expected at most {LONGEST_MATERIAL}"
    return ""
