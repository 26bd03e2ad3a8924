"""The sources by which a kernel's values and its control flow may differ.

Follows everything forwards until nothing changes: values through arithmetic and branches, numbers
through memory of the group. Of a floating-point number only what it is computed from counts, since
nobody tells work-groups apart by how a sum came about.
"""

from collections.abc import Iterable
from typing import Final

from evaluator_svc.inspector.control_dependence import deciding_blocks
from evaluator_svc.inspector.kernel_flow import ANY_GROUP, Act, KernelFlow, Source, Step
from evaluator_svc.inspector.lowered_program import Space

_MAX_ROUNDS: Final = 24
"""Compilers' code takes three or four."""
_LANES: Final = 8
"""Least neighbours of a sub-group, which have a quotient by that many in common."""
_NEAR: Final = (Space.GROUP, Space.PRIVATE)


class ValueSources:
    """Sources of a kernel's values and blocks.

    Args:
        flow: The kernel.
        most_visits: Of steps and branches; a kernel that needs more is too tangled.
    """

    def __init__(self, flow: KernelFlow, most_visits: int) -> None:
        self._flow = flow
        deciding = deciding_blocks(flow.successors)
        self._deciding = deciding or {}
        self._values: dict[int, Source] = {}
        self._guards: dict[int, Source] = dict.fromkeys(flow.blocks, Source.NOTHING)
        self._before: dict[int, list[int]] = {}
        for block, targets in flow.successors.items():
            for target in targets:
                self._before.setdefault(target, []).append(block)
        self._held: dict[Space, Source] = dict.fromkeys(Space, Source.NOTHING)
        self._roots: dict[int, frozenset[int]] = {}
        self._held_roots: frozenset[int] = frozenset()
        counts: dict[int, int] = {}
        for _, step in flow.steps():
            for result in step.results:
                counts[result] = counts.get(result, 0) + 1
        self._merged = {value for value, count in counts.items() if count > 1}
        self._visits_of_a_round = sum(counts.values()) + sum(map(len, self._deciding.values()))
        self.visit_count = 0
        """Most visits of steps and branches."""
        self.is_settled = deciding is not None and self._settles(most_visits)

    def of(self, values: Iterable[int]) -> Source:
        """Return the sources by which any of several values may differ."""
        found = Source.NOTHING
        for value in values:
            found |= self._values.get(value, Source.NOTHING)
        return found

    def of_guards(self, block: int, step: Step) -> Source:
        """Return the sources that decide whether a step is executed."""
        return self._guards[block] | self.of(step.condition)

    def deciders(self, block: int) -> Iterable[int]:
        """Return the blocks whose branches directly decide whether a block is reached."""
        return self._deciding[block]

    def roots(self, values: Iterable[int]) -> frozenset[int]:
        """Return the buffers that an address may be in."""
        found: frozenset[int] = frozenset()
        for value in values:
            found |= self._roots.get(value, frozenset())
        return found

    def is_single(self, values: Iterable[int]) -> bool:
        """Return whether values are computed at one place each, so that a name is a value."""
        return self._merged.isdisjoint(values)

    def _settles(self, most_visits: int) -> bool:
        for _ in range(_MAX_ROUNDS):
            self.visit_count += self._visits_of_a_round
            if self.visit_count > most_visits:
                return False
            if not self._changes():
                return True
        return False

    def _changes(self) -> bool:
        """Follow every step once; return whether anything was learnt."""
        has_changed = False
        for block, steps in self._flow.blocks.items():
            guard = Source.NOTHING
            for decider in self._deciding[block]:
                guard |= self._guards[decider] | self.of(self._flow.decides[decider])
            if guard | self._guards[block] != self._guards[block]:
                self._guards[block] |= guard
                has_changed = True
            for step in steps:
                has_changed |= self._follow(block, step)
        return has_changed

    def _follow(self, block: int, step: Step) -> bool:
        has_changed = False
        if step.act in (Act.STORE, Act.ATOMIC):
            stored = self.of(step.inputs)
            if step.space is not Space.GLOBAL:
                self._held_roots |= self.roots(step.inputs)
            for space in _NEAR if step.space is Space.GENERIC else (step.space,):
                if stored | self._held[space] != self._held[space]:
                    self._held[space] |= stored
                    has_changed = True
        if not step.results:
            return has_changed
        found = self._result(block, step)
        pointed = self.roots(step.pointed) | (frozenset({step.root}) if step.root else frozenset())
        if step.act is Act.LOAD and step.space in _NEAR and not step.is_float:
            pointed |= self._held_roots
        for result in step.results:
            held = self._values.get(result, Source.NOTHING)
            if found | held != held:
                self._values[result] = found | held
                has_changed = True
            roots = self._roots.get(result, frozenset())
            if not pointed <= roots:
                self._roots[result] = roots | pointed
                has_changed = True
        return has_changed

    def _result(self, block: int, step: Step) -> Source:
        if step.act is Act.LOAD:
            return step.source | self._loaded(step)
        if step.act is Act.ATOMIC:
            is_near = step.space in _NEAR
            return step.source | (self._loaded(step) if is_near else Source.ORDER | Source.DATA)
        found = step.source | self.of(step.inputs)
        if step.is_uniform or step.quotient >= _LANES:
            found &= ~Source.LANE
        is_merge = step.is_merge or not self._merged.isdisjoint(step.results)
        if is_merge and not step.is_float:
            ways = self._guards[block] | self.of(step.condition)
            if step.is_merge:
                for before in self._before.get(block, ()):
                    ways |= self._guards[before] | self.of(self._flow.decides[before])
            found |= ways & ~Source.LANE
        return found

    def _loaded(self, step: Step) -> Source:
        place = self.of(step.address)
        found = Source.DATA | (place & Source.ORDER)
        if place & (ANY_GROUP | Source.CHOSEN):
            found |= Source.CHOSEN
        if step.space in (*_NEAR, Space.GENERIC):
            held = self._held[Space.GROUP] | self._held[Space.PRIVATE]
            if step.space is not Space.GENERIC:
                held = self._held[step.space]
            if step.is_float and held & (ANY_GROUP | Source.CHOSEN):
                found |= Source.CHOSEN
            elif not step.is_float:
                found |= held | place
        return found
