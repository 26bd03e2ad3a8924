"""Concurrent runs on several classes share their best candidates.

A candidate is injected (`domain.steering`), so that the archive records where it came from, and a
resumed run judges those that are left. Times are not shared: each run judges on its own class.
"""

import asyncio
import logging
from typing import Final

from kernel_foundry.domain.candidate import Candidate
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.steering import Steering, SteeringAction
from kernel_foundry.errors import KernelFoundryError
from kernel_foundry.ports import Archive
from kernel_foundry.sdk.loop.progress import (
    AdmissionEvent,
    Event,
    Listener,
    RunResult,
    VerdictEvent,
)

MOST_SHARED: Final = 200
"""Most candidates that a run gets from others: each costs it an evaluation."""

_log = logging.getLogger(__name__)


class CandidateForwarder:
    """Passes new best candidates on to the other runs in their language."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._runs: dict[str, Language] = {}
        """Those that are going on."""
        self._given: dict[str, int] = {}
        self._best: dict[str, Candidate] = {}
        """By run, also of those that have ended."""
        self._known: dict[str, set[str]] = {}
        """Digests that each run has judged or was given."""
        self._orders: asyncio.Queue[tuple[str, Candidate]] = asyncio.Queue()

    def listener(self, inner: Listener) -> Listener:
        """Return a listener for one run that tells `inner` too."""
        run = ""

        def listen(event: Event) -> None:
            nonlocal run
            inner(event)
            if isinstance(event, AdmissionEvent):
                run = event.run.spec.name
                self._begin(run, event.run.spec.language)
            elif isinstance(event, VerdictEvent):
                self._judged(run, event)
            elif isinstance(event, RunResult):
                self._runs.pop(run, None)

        return listen

    async def work(self) -> None:
        """Pass on until cancelled; what cannot be passed on is only logged, as runs need it not."""
        while True:
            run, candidate = await self._orders.get()
            steering = Steering(action=SteeringAction.INJECT, source=candidate.source)
            try:
                await self._archive.steer(run, steering)
            except KernelFoundryError as error:
                digest = candidate.digest[:12]
                _log.warning("candidate %s was not given to %s: %s", digest, run, error.message)

    def _begin(self, run: str, language: Language) -> None:
        self._runs[run] = language
        self._known.setdefault(run, set())
        for giver, candidate in list(self._best.items()):
            if giver != run:
                self._give(run, candidate)

    def _judged(self, run: str, event: VerdictEvent) -> None:
        self._known[run].add(event.candidate.digest)
        if event.is_promotion or not (event.evaluation.passed and event.result.is_best):
            return
        self._best[run] = event.candidate
        for other in self._runs:
            if other != run:
                self._give(other, event.candidate)

    def _give(self, run: str, candidate: Candidate) -> None:
        given = self._given.get(run, 0)
        is_spoken = candidate.source.language is self._runs[run]
        if not is_spoken or candidate.digest in self._known[run] or given >= MOST_SHARED:
            return
        self._known[run].add(candidate.digest)
        self._given[run] = given + 1
        self._orders.put_nowait((run, candidate))
