"""The bounds of the launch-plan language, each with its reason.

Each is enforced where it applies: `expression.py`, `recorder.py`, `parse.py`.
"""

from __future__ import annotations

from typing import Final

MAX_PLAN_CHARACTERS: Final = 65_536
"""Plans seen in trials have 4-34 lines; this keeps the parser's memory small."""

MAX_SYNTAX_NODES: Final = 20_000
"""Bounds every walk over the tree."""

MAX_NESTING: Final = 100
"""Depth of the syntax tree; keeps the interpreter far from Python's recursion limit."""

MAX_HELPERS: Final = 32
MAX_TUNE_PARAMETERS: Final = 16
MAX_TUNE_VALUES: Final = 64

MAX_STEPS: Final = 100_000
"""Interpreter steps of one bind (or one CONST or WHERE evaluation)."""

EXPRESSION_NODES_PER_STEP: Final = 16
"""A statement is one step; a long expression pays one more for each so many nodes."""

MAX_LAUNCHES: Final = 4_096
MAX_LIBRARY_CALLS: Final = 1_024
MAX_SCRATCH_BUFFERS: Final = 1_024

SCRATCH_SHARE: Final = 4
"""Scratch may hold a quarter of the device's memory (the divisor)."""

PREPARED_SHARE: Final = 1.25
"""Results of `prepare` may have this many times the bytes that it reads: room for padding and
for a layout, none for tables of results."""

MAX_TUPLE_WEIGHT: Final = 256
"""Items of a tuple with all that is nested in it; stops tuples that double in a loop."""

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**64 - 1
"""Whole numbers of a plan fit a signed or an unsigned 64-bit C type."""

ALIGNMENT_BYTES: Final = 256
"""Promise of the name table; scratch is accounted in these units."""
