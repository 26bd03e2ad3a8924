"""Passes over a row: which reductions each takes, and what is kept for the next.

Code is written by `row_kernel` of each language.
"""

from dataclasses import dataclass

from generator_svc.recipes.expression import Apply, Extent, Load, Reduce, Value, cost, level
from generator_svc.recipes.row_program import RowProgram


@dataclass(frozen=True, kw_only=True)
class RowPass:
    """One pass over the row."""

    reductions: tuple[Reduce, ...]
    available: Value | None
    """What an earlier pass kept."""
    keeps: Value | None
    """What this pass keeps for later ones."""
    is_last: bool
    """True for the pass that writes FULL outputs."""

    def wanted(self, outputs: tuple[Value, ...]) -> list[Value]:
        """Return what the pass computes for each element, of a program with these outputs."""
        wanted: list[Value] = [r.operand for r in self.reductions]
        if self.is_last:
            wanted += [v for v in outputs if v.extent is Extent.FULL]
        if self.keeps is not None:
            wanted.append(self.keeps)
        return wanted

    def reads(self, outputs: tuple[Value, ...]) -> frozenset[str]:
        """Return the FULL tensors that the pass reads, of a program with these outputs."""
        open_values = self.wanted(outputs)
        seen: set[Value] = {self.available} if self.available is not None else set()
        found: set[str] = set()
        while open_values:
            value = open_values.pop()
            if value in seen or value.extent in (Extent.SCALAR, Extent.ROW):
                continue
            seen.add(value)
            if isinstance(value, Load) and value.extent is Extent.FULL:
                found.add(value.name)
            open_values.extend(value.arguments)
        return frozenset(found)


def schedule(program: RowProgram, *, keep: bool, keep_loads: bool = False) -> tuple[RowPass, ...]:
    """Return the passes in order.

    Args:
        program: What is computed.
        keep: Each pass keeps the costliest value that is needed again.
        keep_loads: That may be what was only read: for places faster than memory.
    """
    levels: dict[Value, int] = {}
    reductions = _reductions(program.values)
    depth = max((level(r, levels) for r in reductions), default=0)
    by_pass = [tuple(r for r in reductions if level(r, levels) == p + 1) for p in range(depth)]
    needs = [tuple(r.operand for r in group) for group in by_pass]
    full_outputs = tuple(v for v in program.values if v.extent is Extent.FULL)
    if full_outputs:
        by_pass.append(())
        needs.append(full_outputs)
    passes, available = [], None
    for index, group in enumerate(by_pass):
        later = _element_values(tuple(v for need in needs[index + 1 :] for v in need))
        both = [v for v in _element_values(needs[index]) if v in later]
        kinds = (Apply, Load) if keep_loads else Apply
        candidates: list[Value] = [v for v in both if isinstance(v, kinds)]
        chosen = _worth_keeping(candidates, available) if keep else None
        passes.append(
            RowPass(
                reductions=group,
                available=available,
                keeps=chosen,
                is_last=bool(full_outputs) and index == len(by_pass) - 1,
            )
        )
        available = chosen or available
    return tuple(passes)


def _reductions(values: tuple[Value, ...]) -> tuple[Reduce, ...]:
    found: dict[Reduce, None] = {}
    seen: set[Value] = set()

    def visit(value: Value) -> None:
        if value in seen:
            return
        seen.add(value)
        for argument in value.arguments:
            visit(argument)
        if isinstance(value, Reduce) and value.kind != "first":
            found[value] = None

    for value in values:
        visit(value)
    return tuple(found)


def _element_values(values: tuple[Value, ...]) -> dict[Value, None]:
    """Return every FULL value that is read or computed for each element to get `values`."""
    found: dict[Value, None] = {}
    seen: set[Value] = set()
    open_values = list(values)
    while open_values:
        value = open_values.pop()
        if value in seen or isinstance(value, Reduce):
            continue
        seen.add(value)
        if value.extent is Extent.FULL:
            found[value] = None
        open_values.extend(value.arguments)
    return found


def _worth_keeping(candidates: list[Value], available: Value | None) -> Value | None:
    if not candidates:
        return None
    best = max(candidates, key=cost)
    is_new = best is not available and (available is None or cost(best) > cost(available))
    return best if is_new else None
