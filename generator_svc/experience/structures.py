"""Structures: kinds of operators that decide how a kernel is built, of a task and of a lesson."""

import re
from typing import Final

from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.lesson import Lesson

PRODUCT: Final = "product"
CONVOLUTION: Final = "convolution"
ATTENTION: Final = "attention"
SOFTMAX: Final = "softmax"
NORMALISATION: Final = "normalisation"

_PRODUCTS: Final = (
    *("mm", "bmm", "addmm", "baddbmm", "addbmm", "matmul", "linear", "einsum", "mv"),
    "_scaled_mm",
)
_SOFTMAX: Final = ("softmax", "logsumexp", "cross_entropy")
_DEVIATIONS: Final = ("rsqrt", "var", "var_mean", "std", "std_mean")

_WORDS: Final = re.compile(
    rf"\b(?:(?P<{PRODUCT}>products?|gemm|matmul)|(?P<{CONVOLUTION}>convolutions?)"
    rf"|(?P<{ATTENTION}>attention)|(?P<{SOFTMAX}>softmax|log-sum-exp|cross[- ]entropy)"
    rf"|(?P<{NORMALISATION}>normalisations?|layer ?norm|rms ?norm))\b",
    re.I,
)


def structures_of(admission: Admission) -> frozenset[str]:
    """Return the known structures of a reference's graph; empty if there are none.

    A convolution is a product too, and products around a softmax are attention.
    """
    graph = admission.workloads[0].graph if admission.workloads else ()
    names = {node.op.removeprefix("aten.").partition(".")[0] for node in graph}
    found = set()
    if any("conv" in name for name in names):
        found |= {CONVOLUTION, PRODUCT}
    if not names.isdisjoint(_PRODUCTS):
        found.add(PRODUCT)
    if any(part in name for name in names for part in _SOFTMAX):
        found |= {SOFTMAX, ATTENTION} if PRODUCT in found else {SOFTMAX}
    if any("attention" in name for name in names):
        found |= {ATTENTION, SOFTMAX, PRODUCT}
    if any("norm" in name for name in names) or not names.isdisjoint(_DEVIATIONS):
        found.add(NORMALISATION)
    return frozenset(found)


def concerns(lesson: Lesson, structures: frozenset[str]) -> bool:
    """Return whether a lesson may concern a task of these structures.

    One whose symptom names none may concern all; one that names attention first is about that
    alone.
    """
    named = [match.lastgroup for match in _WORDS.finditer(lesson.symptom)]
    if named and named[0] == ATTENTION:
        named = [ATTENTION]
    return not named or not structures.isdisjoint(named)
