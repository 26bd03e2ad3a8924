"""What each island of the archive is for, as its candidates' writers are told.

Knows nothing of how islands are chosen; a role that is not listed has no emphasis.
"""

from collections.abc import Mapping
from typing import Final

EMPHASIS: Final[Mapping[str, str]] = {
    "fusion": (
        "Your emphasis is fusion: look first for launches and passes over memory that can be saved"
        " by computing on while values are at hand."
    ),
    "memory": (
        "Your emphasis is memory: look first at which data are moved how often, in which order and"
        " width, and where what is needed again should be kept."
    ),
    "parallelism": (
        "Your emphasis is parallelism: look first at how work is divided among threads and groups"
        " of them, at launch parameters, and at how partial results meet."
    ),
    "compute": (
        "Your emphasis is computation: look first at the algorithm, the instructions in the inner"
        " loop, and how often a value in a register is used before the next load."
    ),
}
"""One sentence for each role."""
