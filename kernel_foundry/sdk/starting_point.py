"""What a run starts from: candidates as first parents, and code that models see.

Nothing of it is executed here: a candidate is judged like any other, and material is only text.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kernel_foundry.domain.candidate import LONGEST_CANDIDATE, KernelSource
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.material import (
    LONGEST_MATERIAL,
    MOST_MATERIALS,
    Material,
    material_fault,
)
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import InvalidArgumentError, RunNotFoundError
from kernel_foundry.plan.candidate_text import ExtractionError, render, split
from kernel_foundry.ports import Archive, Evaluator
from kernel_foundry.sdk.shelf import ShelfKernel
from kernel_foundry.text_file import read_text_file

CANDIDATE_SUFFIX: Final = ".md"
MATERIAL_SUFFIXES: Final = (".cu", ".cuh", ".cpp", ".cc", ".hpp", ".h", ".py")

ELITES_TAKEN: Final = 4
"""Of a run that another one is begun with."""

_BINDS: Final = (EvaluationOutcome.BUILT, EvaluationOutcome.PASSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartingPoint:
    """The candidates and the code that a run starts from."""

    candidates: tuple[KernelSource, ...] = ()
    """First parents, each once."""
    materials: tuple[Material, ...] = ()


async def starting_point(
    sources: Sequence[Path | str | Material],
    *,
    archive: Archive,
    evaluator: Evaluator,
    task: Task,
    language: Language,
    device: str,
) -> StartingPoint:
    """Return the starting point from files and runs.

    A candidate that does not build and bind for the task is material, too, and so is one in
    another language.

    Args:
        sources: Candidate files (`CANDIDATE_SUFFIX`), code (`MATERIAL_SUFFIXES`, or as it is to
            be shown), names of runs.
        archive: Has the runs.
        evaluator: Says what binds.
        task: Of the run.
        language: Of its candidates.
        device: Id or kind.

    Raises:
        InvalidArgumentError: a source is none of these, or too long; the message says which.
    """
    candidates: dict[str, KernelSource] = {}
    materials: list[Material] = []
    for source in sources:
        if isinstance(source, Material):
            materials.append(source)
            continue
        path = Path(source)
        if path.suffix in MATERIAL_SUFFIXES:
            materials.append(Material(name=path.name, text=read_text_file(path, LONGEST_MATERIAL)))
            continue
        for name, found in await _candidates(path, str(source), archive):
            is_spoken = found.language is language
            if is_spoken and await _binds(found, evaluator, task, device):
                candidates[found.digest] = found
            else:
                text = render(found)
                materials.append(Material(name=name, text=text[:LONGEST_MATERIAL]))
    fault = material_fault(tuple(materials))
    if fault:
        raise InvalidArgumentError(f"to start from: {fault}", field="start_from")
    return StartingPoint(candidates=tuple(candidates.values()), materials=tuple(materials))


async def with_shelf(
    begun: StartingPoint,
    kernels: Sequence[ShelfKernel],
    *,
    evaluator: Evaluator,
    task: Task,
    device: str,
) -> StartingPoint:
    """Return `begun` with kernels of the shelf behind what the user gave, as far as there is room.

    All are shown; those for the same graph that build and bind for the task are first parents too.

    Args:
        begun: What the user gave.
        kernels: In the run's language.
        evaluator: Says what binds.
        task: Of the run.
        device: Id or kind.
    """
    candidates = {source.digest: source for source in begun.candidates}
    materials = list(begun.materials)
    for kernel in kernels:
        source, material = kernel.winner.candidate.source, kernel.material
        if material is not None and len(materials) < MOST_MATERIALS:
            materials.append(material)
        if not kernel.computes_the_same or source.digest in candidates:
            continue
        length = sum(len(s.device_code) + len(s.plan) for s in (*candidates.values(), source))
        if length <= LONGEST_CANDIDATE and await _binds(source, evaluator, task, device):
            candidates[source.digest] = source
    return StartingPoint(candidates=tuple(candidates.values()), materials=tuple(materials))


async def _binds(source: KernelSource, evaluator: Evaluator, task: Task, device: str) -> bool:
    request = EvaluationRequest(task=task, device=device, source=source, build_only=True)
    return (await evaluator.evaluate(request)).outcome in _BINDS


async def _candidates(path: Path, source: str, archive: Archive) -> list[tuple[str, KernelSource]]:
    """Return the candidate of a file, or the best elites of a run, each with where it is from."""
    if path.suffix == CANDIDATE_SUFFIX:
        try:
            return [(path.name, split(read_text_file(path, LONGEST_CANDIDATE)))]
        except ExtractionError as error:
            raise InvalidArgumentError(
                f"{path} is not a candidate: {error}", field="start_from"
            ) from error
    try:
        elites = await archive.elites(source, limit=ELITES_TAKEN)
    except RunNotFoundError as error:
        raise InvalidArgumentError(
            f"{source}: neither a run nor a candidate file ({CANDIDATE_SUFFIX}) nor code "
            f"({', '.join(MATERIAL_SUFFIXES)})",
            field="start_from",
        ) from error
    return [(f"run {source}, {e.candidate.digest[:12]}", e.candidate.source) for e in elites]
