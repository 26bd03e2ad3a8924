"""Judges winners on the other classes of devices: as they are, and after a sweep there.

Each verdict is kept before the next one is asked for, so a call after a kill goes on and judges
nothing twice; of a sweep that was cut short nothing is kept.
"""

import asyncio
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Final

from kernel_foundry.domain.archive import Elite
from kernel_foundry.domain.digest import content_digest
from kernel_foundry.domain.evaluation import Evaluation, Setting
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.sweep import Configuration, ConfigurationResult, SweepRequest, best_of
from kernel_foundry.errors import (
    KernelFoundryError,
    TaskInvalidError,
    TaskRefusedError,
    first_failure,
)
from kernel_foundry.plan.configuration import space_size
from kernel_foundry.plan.errors import PlanError
from kernel_foundry.plan.parse import parse
from kernel_foundry.ports import Evaluator
from kernel_foundry.sdk.loop.sweeping import MOST_CONFIGURATIONS, SWEEP_SECONDS
from kernel_foundry.sdk.suite.cross_hardware.devices import MatrixDevice
from kernel_foundry.sdk.suite.cross_hardware.winners import TunedRuns
from kernel_foundry.sdk.suite.kept_verdicts import KeptVerdicts
from kernel_foundry.sdk.suite.results import EntryResult

MOST_FAILURES: Final = 3
"""Winners in a row that a device fails to judge, before it counts as gone."""

_OF_THE_TASK: Final = (TaskInvalidError, TaskRefusedError)


KEPT: Final = "winners on other devices"
"""What `KeptVerdicts` are asked for here; each is known by a digest of winner, device and way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossedWinner:
    """A winner on a class of devices that is not its own."""

    tuned: TunedRuns
    result: EntryResult
    """Its run."""
    on: MatrixDevice
    as_it_is: Evaluation | None = None
    """In the configuration that won; None: not judged."""
    re_swept: Evaluation | None = None
    """In the best configuration there, which may be the same; None: not swept."""
    reason: str = ""
    """Why one of the two is missing."""


Listener = Callable[[CrossedWinner, int, int], None]
"""Told of each winner that is done on a device, of how many are, and of how many there are."""


async def cross_winners(
    evaluator: Evaluator,
    rows: Sequence[TunedRuns],
    devices: Sequence[MatrixDevice],
    kept: Mapping[str, KeptVerdicts],
    listener: Listener,
) -> tuple[CrossedWinner, ...]:
    """Return what each winner came to on each other class in its language, all devices at once.

    A failure of ours is a reason and not raised, and so is a class that is not there: what is kept
    of it is taken.

    Args:
        evaluator: Has the classes that can be asked for.
        rows: The winners.
        devices: Classes, in the order of the results.
        kept: By suite: verdicts of before, and where new ones are added.
        listener: Told of each result.
    """
    done = 0

    def tell(one: CrossedWinner) -> None:
        nonlocal done
        done += 1
        listener(one, done, total)

    crossings = [_Crossing(evaluator, rows, device, kept, tell) for device in devices]
    total = sum(len(crossing.found()) for crossing in crossings)
    try:
        async with asyncio.TaskGroup() as group:
            for crossing in crossings:
                for _ in range(crossing.device.at_once):
                    group.create_task(crossing.work())
    except ExceptionGroup as failures:
        raise first_failure(failures) from failures
    return tuple(found for crossing in crossings for found in crossing.found())


class _Crossing:
    """The winners of others on one class of devices."""

    def __init__(
        self,
        evaluator: Evaluator,
        rows: Sequence[TunedRuns],
        device: MatrixDevice,
        kept: Mapping[str, KeptVerdicts],
        tell: Callable[[CrossedWinner], None],
    ) -> None:
        self.device = device
        self._evaluator = evaluator
        self._kept = kept
        self._tell = tell
        self._winners = [
            CrossedWinner(tuned=tuned, result=result, on=device)
            for tuned in rows
            if tuned.home.language is device.language and tuned.home.name != device.name
            for result in tuned.winners
        ]
        self._waiting = deque(range(len(self._winners)))
        self._failures = 0
        self._gone = "" if device.asked else "the device is not there now"

    def found(self) -> list[CrossedWinner]:
        """Return all of them."""
        return self._winners

    async def work(self) -> None:
        """Judge one after the other until none waits."""
        while self._waiting:
            at = self._waiting.popleft()
            self._winners[at] = await self._crossed(self._winners[at])
            self._tell(self._winners[at])

    async def _crossed(self, one: CrossedWinner) -> CrossedWinner:
        asking = _Asking(self._evaluator, one, self._kept[one.tuned.suite])
        one = replace(one, as_it_is=asking.known_as_it_is(), re_swept=asking.known_re_swept())
        if one.as_it_is and one.re_swept:
            return one
        if self._gone:
            return replace(one, reason=self._gone)
        try:
            as_it_is = one.as_it_is or await asking.as_it_is()
            one = replace(one, as_it_is=as_it_is)
            one = replace(one, re_swept=await asking.re_swept(as_it_is))
        except _OF_THE_TASK as error:
            return replace(one, reason=error.message)
        except KernelFoundryError as error:
            self._failures += 1
            if self._failures >= MOST_FAILURES:
                self._gone = f"the device failed {MOST_FAILURES} times in a row: {error.message}"
            return replace(one, reason=error.message)
        self._failures = 0
        return one


class _Asking:
    """What is asked about one winner on one device, and what is kept of it."""

    def __init__(self, evaluator: Evaluator, one: CrossedWinner, kept: KeptVerdicts) -> None:
        assert one.result.winner is not None, "only winners are crossed"
        self._evaluator = evaluator
        self._elite: Elite = one.result.winner
        self._entry = one.result.entry
        self._limits = one.tuned.limits
        self._device = one.on
        self._kept = kept
        values = ", ".join(f"{s.name}={s.value}" for s in self._elite.evaluation.configuration)
        limits = self._limits
        what = f"on {one.on.name}, from [{values}], build {limits.build_seconds:g} s, run"
        what += f" {limits.run_seconds:g} s"
        swept = f"{MOST_CONFIGURATIONS} configurations in {SWEEP_SECONDS:g} s"
        self._as_it_is = content_digest(self._elite.candidate.digest, f"as it is {what}")
        self._re_swept = content_digest(self._elite.candidate.digest, f"re-swept {what}, {swept}")

    def known_as_it_is(self) -> Evaluation | None:
        """Return the verdict that is kept."""
        return self._known(self._as_it_is)

    def known_re_swept(self) -> Evaluation | None:
        """Return the verdict that is kept."""
        return self._known(self._re_swept)

    async def as_it_is(self) -> Evaluation:
        """Judge the winner in its configuration, and keep that."""
        found = await self._judge(self._elite.evaluation.configuration)
        self._kept.keep(self._entry, self._as_it_is, found)
        return found

    async def re_swept(self, as_it_is: Evaluation) -> Evaluation:
        """Sweep, judge the best configuration where it is another one, and keep the better."""
        results = await self._sweep()
        best = best_of(results)
        found = as_it_is
        if best is not None and best.configuration != as_it_is.configuration:
            judged = await self._judge(best.configuration)
            found = max(as_it_is, judged, key=lambda e: (e.passed, e.fitness))
        found = replace(found, swept_count=len(results))
        self._kept.keep(self._entry, self._re_swept, found)
        return found

    def _known(self, asked: str) -> Evaluation | None:
        known = self._kept.find(self._entry.task, asked)
        return None if known is None else known.evaluation

    async def _sweep(self) -> tuple[ConfigurationResult, ...]:
        """What became of each configuration, the winner's own first; a single one is not swept."""
        source = self._elite.candidate.source
        if not _has_choice(source.plan):
            return ()
        request = SweepRequest(
            task=self._entry.task,
            device=self._device.asked,
            source=source,
            limits=self._limits,
            order=(Configuration(settings=self._elite.evaluation.configuration),),
            max_configurations=MOST_CONFIGURATIONS,
            seconds=SWEEP_SECONDS,
        )
        async with aclosing(self._evaluator.sweep(request)) as stream:
            return tuple([result async for result in stream])

    async def _judge(self, configuration: tuple[Setting, ...]) -> Evaluation:
        return await self._evaluator.evaluate(
            EvaluationRequest(
                task=self._entry.task,
                device=self._device.asked,
                source=self._elite.candidate.source,
                configuration=configuration,
                limits=self._limits,
                fresh_baselines=True,
                request_id=uuid.uuid4().hex,
            )
        )


def _has_choice(plan: str) -> bool:
    try:
        return space_size(parse(plan)) > 1
    except PlanError:
        return False
