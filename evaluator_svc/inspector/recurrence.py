"""Finds values that a loop carries in registers: tiles of products, online recurrences."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from evaluator_svc.inspector.dataflow import Dataflow, Kind, LoopValue, Node

_MAX_NODES: Final = 400
"""Values looked at for one expression."""
_MAX_VISITS: Final = 2_000_000
"""Values looked at in one function; what lies beyond counts as not there."""
TILE_SIZE: Final = 4
"""Sums of products carried side by side that make a register tile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrences:
    """The values that the loops of one function carry."""

    has_register_tile: bool
    """Several sums of products whose factors are loaded once and used for more than one."""
    is_online: bool
    """A running value is corrected by what came later, as in online softmax or Welford."""


def recurrences(flow: Dataflow) -> Recurrences:
    """Return the values that a function's loops carry."""
    expressions = _Expressions(flow)
    return Recurrences(
        has_register_tile=any(expressions.is_tile(c) for c in flow.carried)
        or any(expressions.is_array_tile(value) for value in flow.array_updates),
        is_online=any(expressions.is_online(c) for several in flow.carried for c in several),
    )


class _Expressions:
    def __init__(self, flow: Dataflow) -> None:
        self._flow = flow
        self._nodes = flow.nodes
        self._left = _MAX_VISITS

    def is_tile(self, carried: tuple[LoopValue, ...]) -> bool:
        """Return whether values carried by one loop form a register tile."""
        size = 0
        users: dict[int, int] = {}
        for one in carried:
            loads = self._product_loads(one.update, one.value)
            if loads:
                size += one.lanes
                for load in loads:
                    users[load] = users.get(load, 0) + one.lanes
        return size >= TILE_SIZE and any(count > 1 for count in users.values())

    def is_array_tile(self, stored: int) -> bool:
        """Return whether a value stored into a private array is what was there and products."""
        held = next((a for a in self._addends(stored) if a in self._flow.array_loads), 0)
        return bool(held) and bool(self._product_loads(stored, held))

    def is_online(self, carried: LoopValue) -> bool:
        """Return whether a carried value is corrected in each turn."""
        for node in self._tree(carried.update):
            factors = _factors(node)
            if not factors:
                continue
            trees = [list(self._tree(f)) for f in factors]
            for own, other in ((0, 1), (1, 0)):
                holds = any(n.id == carried.value for n in trees[own])
                if holds and any(n.kind is Kind.EXPONENTIAL for n in trees[other]):
                    return True
                deviates = any(
                    n.kind is Kind.SUBTRACT and carried.value in n.operands for n in trees[own]
                )
                if deviates and carried.value in self._addends(carried.update):
                    return True
        return False

    def _product_loads(self, update: int, start: int) -> frozenset[int]:
        """Return the loads that are multiplied and added to `start`; none unless in pairs."""
        addends = self._addends(update)
        if start not in addends:
            return frozenset()
        found: set[int] = set()
        for addend in addends:
            node = self._nodes.get(addend)
            factors = _factors(node) if node is not None else ()
            if not factors:
                continue
            left, right = (self._loads(f) for f in factors)
            if left and right and left.isdisjoint(right):
                found |= left | right
        return frozenset(found)

    def _addends(self, value: int) -> frozenset[int]:
        """Return everything that a sum is made of, the partial sums included."""
        seen: set[int] = set()
        pending = [value]
        while pending and len(seen) < _MAX_NODES:
            current = pending.pop()
            if current in seen:
                continue
            seen.add(current)
            node = self._nodes.get(current)
            if node is None or current in self._flow.heads:
                continue
            if node.kind in (Kind.ADD, Kind.SUBTRACT, Kind.CHOICE):
                pending.extend(node.operands)
            elif node.kind is Kind.MULTIPLY_ADD:
                pending.append(node.operands[2])
        return frozenset(seen)

    def _loads(self, value: int) -> frozenset[int]:
        return frozenset(n.id for n in self._tree(value) if n.kind is Kind.LOAD)

    def _tree(self, value: int) -> Iterator[Node]:
        """Iterate over what a value is computed from, up to loads and loop-carried values."""
        seen: set[int] = set()
        pending = [value]
        while pending and len(seen) < _MAX_NODES and self._left > 0:
            current = pending.pop()
            node = self._nodes.get(current)
            if node is None or current in seen:
                continue
            seen.add(current)
            self._left -= 1
            yield node
            if current not in self._flow.heads and node.kind is not Kind.LOAD:
                pending.extend(node.operands)


def _factors(node: Node) -> tuple[int, ...]:
    is_product = node.kind in (Kind.MULTIPLY, Kind.DIVIDE, Kind.MULTIPLY_ADD)
    return node.operands[:2] if is_product else ()
