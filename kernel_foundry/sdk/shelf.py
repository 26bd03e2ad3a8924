"""The shelf: winners of earlier runs, found by the structure of what their references compute.

It is stored in the archive, so `runs delete` also removes a run's kernel. It has only winners that
were measured again at the end of their run, passed, are fully trusted and no slower than the
fastest baseline. Nothing is executed here: its kernels are judged like any other candidate.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kernel_foundry.domain.archive import Elite, Run
from kernel_foundry.domain.check import Trust
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.material import LONGEST_MATERIAL, Material
from kernel_foundry.domain.operator_list import computes_the_same, likeness
from kernel_foundry.errors import RunNotFoundError
from kernel_foundry.plan.candidate_text import render
from kernel_foundry.ports import Archive
from kernel_foundry.printable import one_line, printable
from kernel_foundry.sdk.archive_pages import all_runs
from kernel_foundry.sdk.loop.promotion import winner

SHELF_SHOWN: Final = 2
"""Kernels that a run is given, at most."""

_RUNS_COMPARED: Final = 1_000
"""Newest runs of the archive that are looked at."""

_LEAST_LIKENESS: Final = 0.3
"""A kernel for a reference that shares less has little to teach."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShelfKernel:
    """A winner of an earlier run."""

    run: Run
    winner: Elite
    likeness: float
    """Of its reference and the one that was asked for, in [0, 1]."""
    computes_the_same: bool
    """Whether it is the same graph, whatever its sizes."""

    @property
    def material(self) -> Material | None:
        """The whole kernel as a prompt shows it; None for one that is too long for a prompt."""
        text = printable(render(self.winner.candidate.source))
        if len(text) > LONGEST_MATERIAL:
            return None
        spec, speedup = self.run.spec, self.winner.evaluation.speedup
        fast = "" if speedup is None else f", {speedup:.2f}× there"
        name = (
            f"verified kernel of run {spec.name} for task {spec.task.name} on {spec.device}{fast}"
        )
        return Material(name=one_line(name), text=text)


async def shelf_kernels(
    archive: Archive,
    operators: Sequence[str],
    *,
    language: Language,
    except_run: str = "",
    limit: int = SHELF_SHOWN,
) -> tuple[ShelfKernel, ...]:
    """Return the kernels for the most alike references, best first; of equal ones the faster.

    Args:
        archive: Has the runs.
        operators: Of the reference in question (`operator_list`).
        language: Of the kernels.
        except_run: Name of a run whose own kernel is left out.
        limit: The most to return. Each candidate stands once.
    """
    if not operators:
        return ()
    alike: list[tuple[float, float, Run]] = []
    compared = 0
    async for run in all_runs(archive):
        compared += 1
        if compared > _RUNS_COMPARED:
            break
        if run.spec.language is not language or run.spec.name == except_run or not run.best_speedup:
            continue
        found = likeness(operators, run.spec.operators)
        if found >= _LEAST_LIKENESS:
            alike.append((found, run.best_speedup, run))
    alike.sort(key=lambda one: one[:2], reverse=True)
    kernels: dict[str, ShelfKernel] = {}
    for found, _speedup, run in alike:
        if len(kernels) == limit:
            break
        best = await verified_winner(archive, run.spec.name)
        if best is not None and best.candidate.digest not in kernels:
            kernels[best.candidate.digest] = ShelfKernel(
                run=run,
                winner=best,
                likeness=found,
                computes_the_same=computes_the_same(operators, run.spec.operators),
            )
    return tuple(kernels.values())


async def shelf(
    archive: Archive, *, language: Language | None = None, like: str | None = None
) -> tuple[ShelfKernel, ...]:
    """Return all kernels on the shelf, newest first.

    Args:
        archive: Has the runs.
        language: Of the kernels; None: any.
        like: Name of a run: only what a run of its task would find, best first, without limit.

    Raises:
        RunNotFoundError: there is no run `like`.
    """
    if like is not None:
        spec = (await archive.get_run(like)).spec
        asked = language or spec.language
        return await shelf_kernels(
            archive, spec.operators, language=asked, except_run=spec.name, limit=_RUNS_COMPARED
        )
    kernels: list[ShelfKernel] = []
    async for run in all_runs(archive):
        if not run.spec.operators or not run.best_speedup:
            continue
        if language is not None and run.spec.language is not language:
            continue
        best = await verified_winner(archive, run.spec.name)
        if best is not None:
            kernels.append(ShelfKernel(run=run, winner=best, likeness=1.0, computes_the_same=True))
    return tuple(kernels)


async def verified_winner(archive: Archive, run: str) -> Elite | None:
    """Return a run's winner if it is verified and may be on the shelf, else None."""
    try:
        best = await winner(archive, run)
    except RunNotFoundError:  # deleted since
        return None
    if best is None:
        return None
    verdict = best.evaluation
    is_verified = verdict.passed and verdict.is_final and verdict.trust is Trust.FULL
    is_fast = verdict.speedup is not None and verdict.speedup >= 1.0
    return best if is_verified and is_fast else None
