"""Where a candidate stands among kernels: its measures, and why.

Read from what the compiler made of it; from comment-free source where that cannot be read. Words
in comments and names decide nothing. `levels` has the rule of each level.
"""

from collections.abc import Iterable

from evaluator_svc import ptx, spirv
from evaluator_svc.behaviour.facts import KernelFacts
from evaluator_svc.behaviour.from_ptx.facts import kernel_facts as facts_of_ptx
from evaluator_svc.behaviour.from_spirv.facts import kernel_facts as facts_of_spirv
from evaluator_svc.behaviour.levels import PlanCounts, algorithm, memory, synchronization
from evaluator_svc.behaviour.source_facts import source_facts
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.measures import Measures

__all__ = ["KernelFacts", "explain", "facts_of", "measures"]


def measures(
    *,
    device_code: str,
    language: Language,
    objects: tuple[bytes, ...],
    launch_count: int,
    scratch_count: int,
    reference_op_count: int,
) -> Measures:
    """Return the coordinates of a candidate.

    Args:
        device_code: The source as written.
        language: Of the source.
        objects: Built units, any of them; the first that can be read counts.
        launch_count: Launches of one call of the plan.
        scratch_count: Buffers that the plan allocates.
        reference_op_count: Operators of the reference; 0: unknown.
    """
    facts = facts_of(device_code, language, objects)
    counts = PlanCounts(
        launch_count=launch_count,
        scratch_count=scratch_count,
        reference_op_count=reference_op_count,
    )
    return Measures(
        memory=memory(facts).level,
        algorithm=algorithm(facts, counts).level,
        synchronization=synchronization(facts, counts).level,
    )


def explain(
    *,
    device_code: str,
    language: Language,
    objects: tuple[bytes, ...],
    launch_count: int,
    scratch_count: int,
    reference_op_count: int,
) -> tuple[str, ...]:
    """Return one line for each measure: its level and why. Arguments as for `measures`."""
    facts = facts_of(device_code, language, objects)
    counts = PlanCounts(
        launch_count=launch_count,
        scratch_count=scratch_count,
        reference_op_count=reference_op_count,
    )
    found = (
        ("memory", memory(facts)),
        ("algorithm", algorithm(facts, counts)),
        ("synchronization", synchronization(facts, counts)),
    )
    return tuple(f"{name} {level.level}: {level.reason}" for name, level in found)


def facts_of(device_code: str, language: Language, objects: Iterable[bytes]) -> KernelFacts:
    """Return what a candidate's kernels do.

    Args:
        device_code: The source as written.
        language: Of the source.
        objects: SPIR-V modules, or PTX texts for CUDA; the first that can be read counts.
    """
    for code in objects:
        try:
            if language is Language.CUDA:
                return facts_of_ptx(ptx.parse(code))
            return facts_of_spirv(spirv.parse(code))
        except (ptx.PtxError, spirv.SpirvError):
            continue  # of some other kind, or damaged
    return source_facts(device_code) if language is Language.CUDA else KernelFacts()
