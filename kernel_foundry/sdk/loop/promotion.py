"""The end of a run: candidates that may win are measured again, and the winner is one of them.

The best of many measurements is a lucky one, so no time of the search is announced. A candidate
that leads is measured twice more, each time in a fresh process, in alternation with its baselines,
and under sanitizers if there are any. The slower of the two verdicts counts; a candidate that fails
is out. When the tries run out, the best of those measured again wins. If none of them passed again,
the best of the search is archived again as suspect.
Source: winner's curse, as in auctions and in genome-wide association studies.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from kernel_foundry.domain.archive import Elite
from kernel_foundry.domain.best import MOST_FINAL, winner_of
from kernel_foundry.domain.candidate import Candidate
from kernel_foundry.domain.check import Check, CheckKind, CheckResult, Trust
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.fitness import suspect_fitness
from kernel_foundry.errors import DeviceMemoryError, InvalidArgumentError
from kernel_foundry.ports import Archive

PROMOTIONS: Final = 4
"""Most candidates of a long run that are measured again and pass. Among more of them the luckiest
would win once more."""

LEAST_PROMOTIONS: Final = 3
"""The same for a short run. More than one, since some are slower the second time."""

REFUSALS: Final = 8
"""Failed second measurements after which no other candidate is tried: a sanitizer often refuses
many relatives of one candidate."""


def promotions(evaluations: int) -> int:
    """Return how many candidates may pass again, after a run of `evaluations`."""
    return max(LEAST_PROMOTIONS, min(PROMOTIONS, evaluations // 10))


async def winner(archive: Archive, run: str) -> Elite | None:
    """Return the winner of a run, the best so far if it has not ended, or None if nothing passed.

    Raises:
        RunNotFoundError: no such run.
    """
    archived = (await archive.get_run(run)).evaluation_count
    newest = await archive.evaluations(run, after=max(archived - MOST_FINAL, 0), limit=MOST_FINAL)
    announced = winner_of(newest)
    return announced or next(iter(await archive.elites(run, limit=1)), None)


class Promotion:
    """The end of one run.

    Args:
        elites: Returns at most so many of the run's elites, best first.
        measure: Judges an elite's candidate again.
        add: Adds a verdict to the archive, as one of the run's end.
        is_late: Whether the run's time is over.
        unjudged: Called with a candidate that could not be measured again, and why.
        most: Most candidates that are measured again and pass.
    """

    def __init__(
        self,
        *,
        elites: Callable[[int], Awaitable[tuple[Elite, ...]]],
        measure: Callable[[Elite], Awaitable[Evaluation]],
        add: Callable[[Candidate, Evaluation], Awaitable[None]],
        is_late: Callable[[], bool],
        unjudged: Callable[[Candidate, str], None],
        most: int = PROMOTIONS,
    ) -> None:
        self._elites = elites
        self._measure = measure
        self._add = add
        self._is_late = is_late
        self._unjudged = unjudged
        self._most = most
        self._promoted: dict[str, Elite] = {}
        """By digest: what passed again, with the slower of its verdicts."""
        self._settled: set[str] = set()
        """Digests of what was measured twice more."""
        self._unmeasured: set[str] = set()
        self._refused = 0

    async def run(self) -> None:
        """Repeat until one measured twice more still leads; archive each verdict."""
        while (elite := await self._leader()) is not None:
            digest = elite.candidate.digest
            if digest in self._settled:
                return
            if digest not in self._promoted and self._has_no_more_tries():
                break
            await self._again(elite)
        while self._promoted and not self._is_late():
            best = max(self._promoted.values(), key=lambda e: e.evaluation.fitness)
            if best.candidate.digest in self._settled:
                return
            await self._again(best)
        if not self._promoted:
            await self._add_unpromoted()

    def _has_no_more_tries(self) -> bool:
        tries = len(self._promoted) + len(self._unmeasured)
        began = tries or self._refused
        return tries >= self._most or self._refused >= REFUSALS or (bool(began) and self._is_late())

    async def _leader(self) -> Elite | None:
        elites = await self._elites(1 + len(self._unmeasured))
        able = (e for e in elites if e.candidate.digest not in self._unmeasured)
        return next(able, None)

    async def _again(self, elite: Elite) -> None:
        digest = elite.candidate.digest
        known = self._promoted.get(digest)
        if known is not None:
            self._settled.add(digest)
        try:
            evaluation = replace(await self._measure(elite), is_final=True)
        except (DeviceMemoryError, InvalidArgumentError) as error:
            # The earlier verdict stays. A request may not allow this configuration.
            self._unjudged(elite.candidate, error.message)
            if known is None:
                self._unmeasured.add(digest)
            return
        if not evaluation.passed:
            self._refused += 1
            self._promoted.pop(digest, None)
        elif known is None or evaluation.fitness < known.evaluation.fitness:
            self._promoted[digest] = replace(elite, evaluation=evaluation)
        else:
            return
        await self._add(elite.candidate, evaluation)

    async def _add_unpromoted(self) -> None:
        """Archive the best of the search with lower trust: nobody measured it again."""
        for elite in await self._elites(1):
            await self._add(elite.candidate, not_measured_again(elite.evaluation))


def not_measured_again(evaluation: Evaluation) -> Evaluation:
    """Return the verdict of a winner without a second measurement: suspect and unsigned."""
    check = Check(
        kind=CheckKind.SECOND_MEASUREMENT,
        result=CheckResult.SUSPECT,
        note="not measured again at the end of the run: its time is the luckiest of the search",
    )
    return replace(
        evaluation,
        trust=Trust.SUSPECT if evaluation.trust is Trust.FULL else evaluation.trust,
        fitness=suspect_fitness(evaluation.fitness),
        optimistic_fitness=suspect_fitness(evaluation.optimistic_fitness),
        checks=(*evaluation.checks, check),
        attestation=None,
        swept_count=0,
        is_final=True,
    )
