"""What a person asks while a loop works on a run: pause, stop, candidates; also of a later loop."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from archive_svc.archive import LocalArchive
from kernel_foundry.domain.candidate import KernelSource, Operator
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import Proposal, ProposalRequest
from kernel_foundry.domain.steering import Steering, SteeringAction, SteeringEvent
from kernel_foundry.domain.traffic_bound import NEVER
from kernel_foundry.sdk.loop.budget import Budget, StopCause
from kernel_foundry.sdk.loop.progress import Event, RunResult
from kernel_foundry.testing.generator import FakeGenerator
from tests.domain_values import run_spec
from tests.evolution import evolution_of

PAUSE, RESUME, STOP = (
    Steering(action=action)
    for action in (SteeringAction.PAUSE, SteeringAction.RESUME, SteeringAction.STOP)
)
RUN = "run"
MINE = KernelSource(language=Language.SYCL, device_code="// mine 206", plan="pass")
"""One that the fake evaluator finds fast."""
INJECT = Steering(action=SteeringAction.INJECT, source=MINE)


@pytest.fixture
async def archive(tmp_path: Path) -> AsyncIterator[LocalArchive]:
    opened = LocalArchive(f"sqlite:///{tmp_path / 'runs.db'}")
    await opened.create_run(run_spec(seed=5))
    yield opened
    await opened.close()


class _Ears:
    """Listens to a run.

    Args:
        is_awaited: Sets `heard`.
    """

    def __init__(self, is_awaited: Callable[[Event], bool]) -> None:
        self.heard = asyncio.Event()
        self._is_awaited = is_awaited

    def __call__(self, event: Event) -> None:
        """Take an event."""
        if self._is_awaited(event):
            self.heard.set()


def _is_asked(action: SteeringAction) -> Callable[[Event], bool]:
    return lambda event: isinstance(event, SteeringEvent) and event.steering.action is action


async def _evolve(
    archive: LocalArchive,
    *,
    evaluations: int = 12,
    generator: FakeGenerator | None = None,
    listener: Callable[[Event], None] = lambda _event: None,
) -> RunResult:
    evolution = evolution_of(
        await archive.get_run(""),
        archive,
        Budget(evaluations=evaluations, stop_at=NEVER),
        generator=generator or FakeGenerator(),
        listener=listener,
    )
    return await evolution.run()


async def test_a_pause_holds_in_the_next_loop_until_it_is_taken_back(archive: LocalArchive) -> None:
    """Nothing is judged meanwhile, not even what was given; the run then has its whole budget."""
    await archive.steer(RUN, PAUSE)
    await archive.steer(RUN, INJECT)
    for is_killed in (True, False):
        ears = _Ears(_is_asked(SteeringAction.PAUSE))
        loop = asyncio.create_task(_evolve(archive, listener=ears))
        await ears.heard.wait()
        if is_killed:
            loop.cancel()
            await asyncio.wait((loop,))
    assert await archive.evaluations("") == ()
    await archive.steer(RUN, RESUME)
    ended = await loop
    assert ended.cause is StopCause.EVALUATIONS
    assert ended.spent.evaluations >= 12
    first = (await archive.evaluations(""))[0]
    assert first.candidate.digest == MINE.digest


class _SteeringGenerator(FakeGenerator):
    """Has something asked of the run when it is asked for its third proposal, and then hangs.

    Args:
        archive: Has the run.
        steering: What is asked.
    """

    def __init__(self, archive: LocalArchive, steering: Steering, *, hangs: bool) -> None:
        super().__init__()
        self._archive = archive
        self._steering = steering
        self._hangs = hangs
        self._count = 0

    async def propose(self, request: ProposalRequest) -> Proposal:
        """Propose as the fake does, but for the third."""
        self._count += 1
        if self._count == 3:
            await self._archive.steer(RUN, self._steering)
        if self._count >= 3 and self._hangs:
            await asyncio.Event().wait()
        return await super().propose(request)


async def test_a_stop_waits_for_no_model_and_the_winner_is_measured_again(
    archive: LocalArchive,
) -> None:
    ended = await _evolve(archive, generator=_SteeringGenerator(archive, STOP, hangs=True))
    assert ended.cause is StopCause.STOPPED
    assert ended.spent.evaluations == 2
    assert ended.best.evaluation.is_final
    again = await _evolve(archive)
    assert (again.cause, again.spent.evaluations) == (StopCause.STOPPED, 2)
    await archive.steer(RUN, RESUME)
    assert (await _evolve(archive)).cause is StopCause.EVALUATIONS


async def test_a_given_candidate_is_judged_once_and_becomes_a_parent(archive: LocalArchive) -> None:
    heard: list[Event] = []
    generator = _SteeringGenerator(archive, INJECT, hangs=False)
    await _evolve(archive, evaluations=40, generator=generator, listener=heard.append)
    assert [e.steering for e in heard if isinstance(e, SteeringEvent)] == [INJECT]
    archived = await archive.evaluations("")
    mine = next(one for one in archived if one.candidate.source == MINE)
    assert mine.selection is None
    assert (mine.candidate.operator, mine.candidate.parents) == (Operator.SEED, ())
    assert any(MINE.digest in one.candidate.parents for one in archived)
    await _evolve(archive, evaluations=45)
    judged = [one for one in await archive.evaluations("") if one.candidate.source == MINE]
    assert [one.sequence for one in judged if not one.evaluation.is_final] == [mine.sequence]
