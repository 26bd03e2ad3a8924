"""A plan's text with a configuration as its default: chosen values stand first in TUNE.

For handing a winner on: whoever runs it without settings gets what was measured.
"""

import ast
from collections.abc import Iterator, Mapping


def with_default(plan_text: str, values: Mapping[str, str]) -> str:
    """Return `plan_text` with each value moved to the front of its TUNE list.

    Args:
        plan_text: A plan.
        values: Value of TUNE names, written as `str` writes them. What TUNE does not list is
            left alone, and so is a plan that does not parse: a store may hold one.
    """
    source = plan_text.encode()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def span(node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None, "nodes that come from a text know their end"
        assert node.end_col_offset is not None, "nodes that come from a text know their end"
        first = starts[node.lineno - 1] + node.col_offset
        return first, starts[node.end_lineno - 1] + node.end_col_offset

    # From the end, so that earlier positions stay what they are.
    for name, listed in reversed(list(_tune_lists(plan_text))):
        chosen = [e for e in listed.elts if name in values and _text(e) == values[name]]
        if not chosen or chosen[0] is listed.elts[0]:
            continue
        ordered = [chosen[0], *(e for e in listed.elts if e is not chosen[0])]
        texts = [source[slice(*span(e))] for e in ordered]
        first, end = span(listed)
        source = source[:first] + b"[" + b", ".join(texts) + b"]" + source[end:]
    return source.decode()


def _tune_lists(plan_text: str) -> Iterator[tuple[str, ast.List | ast.Tuple]]:
    try:
        statements = ast.parse(plan_text).body
    except (SyntaxError, ValueError):
        return
    for statement in statements:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Dict):
            continue
        targets = [t.id for t in statement.targets if isinstance(t, ast.Name)]
        if targets != ["TUNE"]:
            continue
        for key, value in zip(statement.value.keys, statement.value.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(value, ast.List | ast.Tuple):
                yield str(key.value), value


def _text(element: ast.expr) -> str:
    try:
        return str(ast.literal_eval(element))
    except ValueError:
        return ""
