"""Errors of plans that cannot be written in another language."""

import ast

from kernel_foundry.errors import InvalidArgumentError


def unknown(node: ast.AST) -> InvalidArgumentError:
    """Return the error of a node that no plan has."""
    kind = type(node).__name__
    return InvalidArgumentError(f"the plan has a {kind}, which no plan has", field="plan")


def undefined(name: str) -> InvalidArgumentError:
    """Return the error of a name that means nothing."""
    return InvalidArgumentError(f"the plan names {name!r}, which nothing defines", field="plan")
