"""The operands that a kernel's values are computed from."""

from typing import Final

from evaluator_svc.inspector.kernel_flow import KernelFlow, Source, Step, is_bare

_MAX_VISITS: Final = 200_000
"""Most steps that are followed back; values are taken to follow from nothing beyond these."""


class ValueSlices:
    """All steps behind each value."""

    def __init__(self, flow: KernelFlow) -> None:
        self._made: dict[int, list[Step]] = {}
        for _, step in flow.steps():
            for result in step.results:
                self._made.setdefault(result, []).append(step)
        self._known: dict[tuple[int, ...], frozenset[int]] = {}
        self._left = _MAX_VISITS

    def follow(self, values: tuple[int, ...], load: Step) -> bool:
        """Return whether any of several values follows from what is loaded."""
        if values not in self._known:
            self._known[values] = frozenset(self._behind(values))
        return not self._known[values].isdisjoint(load.results)

    def is_quotient(self, values: tuple[int, ...], group: Source) -> bool:
        """Return whether the number of a group counts in values only once it was divided.

        The first two groups then have the values in common.
        """
        pending, seen = list(values), set(values)
        while pending:
            self._left -= 1
            for step in self._made.get(pending.pop(), ()):
                if step.source & group or self._left < 0:
                    return False
                if step.quotient > 1 and step.inputs and is_bare(step.inputs[0], group, self._made):
                    continue
                new = [value for value in step.inputs if value not in seen]
                pending += new
                seen.update(new)
        return True

    def _behind(self, values: tuple[int, ...]) -> set[int]:
        pending, seen = list(values), set(values)
        while pending and self._left > 0:
            self._left -= 1
            for step in self._made.get(pending.pop(), ()):
                new = [value for value in step.inputs if value not in seen]
                pending += new
                seen.update(new)
        return seen
