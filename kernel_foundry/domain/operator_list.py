"""Operators of a reference as a list of texts, and how alike two such lists are.

Kernels for references with alike lists have alike structures, whatever the tasks are called.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from kernel_foundry.domain.admission import Admission

MOST_OPERATORS: Final = 512
"""Most operators of a list; the rest of a longer graph is left out."""
LONGEST_OPERATOR: Final = 200
"""Characters of one text."""

_NO_OPERATORS: Final = ("placeholder", "output")


def operator_list(admission: Admission) -> tuple[str, ...]:
    """Return the operators of the first workload in order, such as "aten.mm.default float32 64x32".

    Type and shape are those of the result. Empty where the reference could not be exported.
    """
    graph = admission.workloads[0].graph if admission.workloads else ()
    texts = (
        f"{node.op} {node.dtype} {'x'.join(map(str, node.shape))}".strip()
        for node in graph
        if node.op not in _NO_OPERATORS
    )
    return tuple(text[:LONGEST_OPERATOR] for text in texts)[:MOST_OPERATORS]


def operators_fault(operators: Sequence[str]) -> str:
    """Return the fault of a run's list; "" if there is none."""
    if len(operators) > MOST_OPERATORS:
        return f"{len(operators)} operators, expected at most {MOST_OPERATORS}"
    if any(len(text) > LONGEST_OPERATOR for text in operators):
        return f"an operator of more than {LONGEST_OPERATOR} characters"
    return ""


def computes_the_same(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether operators, types and numbers of dimensions are equal; sizes may differ."""
    return bool(one) and list(map(_without_sizes, one)) == list(map(_without_sizes, other))


def likeness(one: Sequence[str], other: Sequence[str]) -> float:
    """Return how alike two lists are, in [0, 1]: 1 for the same with the same shapes.

    The weighted Jaccard index (common over all, with counts) of operators, of neighbouring pairs of
    them, and of operators with type and shape.
    """
    ours, theirs = _features(one), _features(other)
    every = (ours | theirs).total()
    return (ours & theirs).total() / every if every else 0.0


def _features(operators: Sequence[str]) -> Counter[tuple[str, ...]]:
    names = [text.partition(" ")[0].removesuffix(".default") for text in operators]
    features: Counter[tuple[str, ...]] = Counter((name,) for name in names)
    features.update(pairwise(names))
    features.update(("whole", text) for text in operators)
    return features


def _without_sizes(text: str) -> tuple[str, int]:
    operator, _, shape = text.rpartition(" ")
    return operator, shape.count("x")
