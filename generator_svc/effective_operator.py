"""The operator used, after correcting impossible requests."""

from kernel_foundry.domain.archive import Elite, Selection
from kernel_foundry.domain.candidate import Operator
from kernel_foundry.plan import parse


def effective_operator(selection: Selection) -> Operator:
    """Return the operator to use: a failed parent is repaired, whatever the selection asks for.

    A parent that has parameters already is mutated, not made tunable again.
    """
    if selection.parent is None:
        return Operator.SEED
    if not selection.parent.evaluation.passed:
        return Operator.REPAIR
    if selection.operator is Operator.COMBINE and not selection.inspirations:
        return Operator.MUTATE
    if selection.operator in (Operator.SEED, Operator.REPAIR):
        return Operator.MUTATE
    if selection.operator is Operator.TEMPLATISE and _has_parameters(selection.parent):
        return Operator.MUTATE
    return selection.operator


def _has_parameters(elite: Elite) -> bool:
    """Return whether a correct candidate's plan has parameters to tune."""
    return bool(parse(elite.candidate.source.plan).tune)
