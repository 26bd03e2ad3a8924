"""Messages for what the launch-plan language lacks, with what to write instead.

One message for each construct of Python. The tree is walked in `syntax.py`.
"""

from __future__ import annotations

import ast
from typing import Final, NoReturn

from kernel_foundry.plan.errors import policy_error, short
from kernel_foundry.plan.vocabulary import DEVICE_ATTRIBUTES, NO_VIEWS

_REFUSALS: Final[dict[type[ast.AST], str]] = {
    ast.Import: "import is not available: sqrt, exp, log2, cdiv, min, max are built in",
    ast.ImportFrom: "import is not available: sqrt, exp, log2, cdiv, min, max are built in",
    ast.While: "while is not available: use for over range(...) or a tuple",
    ast.Break: "break is not available: put the rest of the loop's body under if",
    ast.Continue: "continue is not available: put the rest of the loop's body under if",
    ast.With: "with is not available",
    ast.Try: "try is not available: use require(...) or if",
    ast.Raise: "raise is not available: use require(...) or assert",
    ast.ClassDef: "classes are not available: use helper functions and tuples",
    ast.FunctionDef: "a function inside a function is not available: define it at top level",
    ast.AsyncFunctionDef: "async is not available: launches run in order",
    ast.Lambda: "lambda is not available: define a helper function at top level",
    ast.Global: "global is not available: pass values to helpers and return them",
    ast.Nonlocal: "nonlocal is not available: pass values to helpers and return them",
    ast.Delete: "del is not available",
    ast.AnnAssign: "annotated assignment is not available: write name = value",
    ast.List: "a list is only available in TUNE and WHERE: write a tuple (...)",
    ast.Dict: "a dictionary is only available as TUNE and CONST: write a tuple (...)",
    ast.Set: "a set is not available: write a tuple (...)",
    ast.ListComp: "comprehensions are not available: use a for loop or write the tuple out",
    ast.SetComp: "comprehensions are not available: use a for loop or write the tuple out",
    ast.DictComp: "comprehensions are not available: use a for loop or write the tuple out",
    ast.GeneratorExp: "comprehensions are not available: use a for loop or write the tuple out",
    ast.Await: "async is not available: launches run in order",
    ast.Yield: "yield is not available: return a tuple",
    ast.YieldFrom: "yield is not available: return a tuple",
    ast.JoinedStr: "f-strings are not available: write a plain string",
    ast.NamedExpr: "the walrus := is not available: assign in a statement of its own",
    ast.Starred: "* unpacking is not available: name every item",
    ast.Match: "match is not available: use if / elif / else",
}

OPERATOR_REFUSALS: Final[dict[type[ast.AST], str]] = {
    ast.Is: "is is not available: compare with ==",
    ast.IsNot: "is not is not available: compare with !=",
    ast.LShift: "<< is not available: write * 2 ** n",
    ast.RShift: ">> is not available: write // 2 ** n",
    ast.BitAnd: "& is not available: write % for a remainder, and for conditions",
    ast.BitOr: "| is not available: write or for conditions",
    ast.BitXor: "^ is not available: write ** for a power, != for conditions",
    ast.Invert: "~ is not available: write not for conditions",
    ast.MatMult: "@ is not available: a matrix product is a kernel's work",
}


def refuse(node: ast.stmt | ast.expr, allowed: str) -> NoReturn:
    """Raise the refusal of a construct that the language does not have.

    Raises:
        PlanError: `policy`, always.
    """
    known = _REFUSALS.get(type(node))
    message = known or f"{type(node).__name__} is not available: {allowed}"
    raise policy_error(message, node.lineno)


def refuse_attribute(node: ast.Attribute) -> NoReturn:
    """Raise the refusal of an attribute beyond the list.

    Raises:
        PlanError: `policy`, always.
    """
    views = ("view", "reshape", "T", "transpose", "permute", "flatten", "narrow", "data_ptr")
    if isinstance(node.value, ast.Name) and node.value.id == "torch":
        raise policy_error(
            f"torch.{short(node.attr)}(...) is not available: scratch memory is "
            "empty(shape, dtype) or zeros(shape, dtype), all else is a kernel's work",
            node.lineno,
        )
    if node.attr in views:
        raise policy_error(f".{node.attr} is not available; {NO_VIEWS}", node.lineno)
    raise policy_error(
        f".{short(node.attr)} is not available: tensors have .shape, .ndim, .dtype, .size(i), "
        f".numel(), .stride(i); device has {', '.join('.' + name for name in DEVICE_ATTRIBUTES)}",
        node.lineno,
    )
