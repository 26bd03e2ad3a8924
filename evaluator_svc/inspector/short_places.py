"""Places in global memory that are computed in 32 bits: wrong in tensors of 2^31 elements."""

from collections.abc import Iterator, Mapping
from typing import Final

from evaluator_svc.inspector.kernel_flow import Act, KernelFlow, Source, Step
from evaluator_svc.inspector.lowered_program import Space
from evaluator_svc.inspector.value_sources import ValueSources
from evaluator_svc.policy.finding import rule_finding
from evaluator_svc.policy.findings_by_size import SHORT_PLACE
from kernel_foundry.domain.finding import Figure, Finding

_LARGEST: Final = (1 << 31) - 1
_MAX_VISITS: Final = 100_000


def short_places(flow: KernelFlow, sources: ValueSources) -> Iterator[Finding]:
    """Iterate over a kernel's finding, at most one."""
    made: dict[int, list[Step]] = {}
    for _, step in flow.steps():
        for result in step.results:
            made.setdefault(result, []).append(step)
    if not any(step.is_short_product for several in made.values() for step in several):
        return
    seen: set[int] = set()
    for _, step in flow.steps():
        if step.act in (Act.LOAD, Act.STORE) and step.space in (Space.GLOBAL, Space.GENERIC):
            for widened in _widened(step.address, made, seen):
                if _has_product(widened, made, sources):
                    yield rule_finding(
                        SHORT_PLACE,
                        f"a place in memory is computed in 32 bits: it is surely right in tensors "
                        f"of {_LARGEST} elements at most",
                        "multiply in 64 bits: (size_t)row * cols + i",
                        step.line,
                        (Figure(name="largest_element_count", value=float(_LARGEST)),),
                    )
                    return


def _widened(
    values: tuple[int, ...], made: Mapping[int, list[Step]], seen: set[int]
) -> Iterator[Step]:
    """Iterate over the steps that make 64 bits of 32 on the way to an address."""
    pending = [value for value in values if value not in seen]
    while pending and len(seen) < _MAX_VISITS:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        for step in made.get(value, ()):
            if step.widens:
                yield step
            elif step.act is None:
                pending += step.inputs


def _has_product(widened: Step, made: Mapping[int, list[Step]], sources: ValueSources) -> bool:
    """Return whether a size of the task is a factor of what is widened."""
    pending, seen = list(widened.inputs), set(widened.inputs)
    while pending and len(seen) < _MAX_VISITS:
        for step in made.get(pending.pop(), ()):
            if step.act is not None or step.is_float:
                continue
            factors = step.inputs[:2]
            if step.is_short_product and any(
                sources.of((factor,)) & Source.ARGUMENT for factor in factors
            ):
                return True
            new = [value for value in step.inputs if value not in seen]
            pending += new
            seen.update(new)
    return False
