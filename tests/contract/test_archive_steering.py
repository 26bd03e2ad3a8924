"""What every archive promises of steering: on each database, behind a socket, by a gateway."""

from dataclasses import replace

import pytest

from kernel_foundry.domain.archive import RunSpec, Selection
from kernel_foundry.domain.candidate import KernelSource, Operator
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.measures import Measures
from kernel_foundry.domain.steering import LONGEST_HINT, Steering, SteeringAction
from kernel_foundry.domain.trick import LONGEST_TRICK, MOST_TRICKS
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.ports import Archive
from tests.contract.archive_entries import candidate_of, verdict_on


async def test_steering_is_kept_in_order(archive: Archive, spec: RunSpec) -> None:
    """Every kind, with its parts; what was asked last, asked again, is one event."""
    await archive.create_run(spec)
    cell = Measures(memory=1, algorithm=2, synchronization=0)
    asked = (
        Steering(action=SteeringAction.PAUSE),
        Steering(action=SteeringAction.RESUME),
        Steering(action=SteeringAction.HINT, text="use wide loads\n```"),
        Steering(action=SteeringAction.PIN, cell=cell),
        Steering(action=SteeringAction.BAN, cell=cell),
        Steering(action=SteeringAction.BAN, text="atomicAdd"),
        Steering(action=SteeringAction.RELEASE, text="atomicAdd"),
        Steering(action=SteeringAction.RELEASE),
        Steering(action=SteeringAction.INJECT, source=candidate_of("mine").source),
        Steering(action=SteeringAction.STOP),
    )
    for steering in asked:
        event = await archive.steer("first", steering)
    assert await archive.steer("first", asked[-1]) == event
    events = await archive.steering("first")
    assert tuple(e.steering for e in events) == asked
    assert [e.sequence for e in events] == list(range(1, len(asked) + 1))
    assert await archive.steering("first", after=6, limit=1) == events[6:7]
    assert await archive.steering("first", after=len(asked)) == ()
    await archive.delete_run("first")
    await archive.create_run(spec)
    assert await archive.steering("first") == ()


@pytest.mark.parametrize(
    "steering",
    [
        Steering(action=SteeringAction.HINT, text="x" * (LONGEST_HINT + 1)),
        Steering(action=SteeringAction.HINT, text="a\0b"),
        Steering(action=SteeringAction.PAUSE, text="why"),
        Steering(action=SteeringAction.BAN),
        Steering(action=SteeringAction.BAN, text="two  blanks"),
        Steering(action=SteeringAction.BAN, text="x" * (LONGEST_TRICK + 1)),
        Steering(
            action=SteeringAction.RELEASE,
            text="atomicAdd",
            cell=Measures(memory=0, algorithm=0, synchronization=0),
        ),
        Steering(action=SteeringAction.PIN),
        Steering(
            action=SteeringAction.STOP, cell=Measures(memory=0, algorithm=0, synchronization=0)
        ),
        Steering(action=SteeringAction.INJECT),
        Steering(
            action=SteeringAction.INJECT,
            source=KernelSource(language=Language.CUDA, device_code="// other", plan="pass"),
        ),
    ],
    ids=lambda steering: steering.action.value,
)
async def test_steering_that_means_nothing_is_refused(
    archive: Archive, spec: RunSpec, steering: Steering
) -> None:
    """Nothing of it is kept."""
    await archive.create_run(spec)
    with pytest.raises(InvalidArgumentError):
        await archive.steer("first", steering)
    assert await archive.steering("first") == ()


async def test_selections_heed_what_was_asked(archive: Archive, spec: RunSpec) -> None:
    """From the next one on: the hint, the pinned cell, and no elite of a banned cell."""
    await archive.create_run(spec)
    elites = {}
    for number, fitness in enumerate((0.9, 0.5)):
        candidate = candidate_of(str(number))
        verdict = await verdict_on(spec.task, candidate, fitness=fitness, cell=(number, 0, 0))
        await archive.add("first", candidate, verdict, request_id=str(number))
        assert verdict.measures is not None
        elites[number] = verdict.measures
    empty = Measures(memory=3, algorithm=3, synchronization=3)

    async def selected() -> list[Selection]:
        return [await archive.select("first") for _ in range(40)]

    await archive.steer("first", Steering(action=SteeringAction.HINT, text="wide loads"))
    assert {s.user_hint for s in await selected()} == {"wide loads"}
    await archive.steer("first", Steering(action=SteeringAction.BAN, cell=elites[0]))
    parents = {s.parent.measures for s in await selected() if s.parent is not None}
    assert parents == {elites[1]}
    await archive.steer("first", Steering(action=SteeringAction.PIN, cell=elites[0]))
    pinned = [s for s in await selected() if s.operator is not Operator.SEED]
    assert {s.parent.measures for s in pinned if s.parent is not None} == {elites[0]}
    assert {s.target for s in pinned} == {None}
    await archive.steer("first", Steering(action=SteeringAction.PIN, cell=empty))
    aimed = [s for s in await selected() if s.operator in (Operator.MUTATE, Operator.COMBINE)]
    assert {s.target for s in aimed} == {empty}
    await archive.steer("first", Steering(action=SteeringAction.RELEASE))
    await archive.steer("first", Steering(action=SteeringAction.HINT))
    assert {s.user_hint for s in await selected()} == {""}
    assert empty not in {s.target for s in await selected()}


async def test_what_uses_a_banned_trick_is_no_parent(archive: Archive, spec: RunSpec) -> None:
    """Whole words of code count, comments do not; selections name what is banned."""
    await archive.create_run(spec)
    codes = {
        "best": "void a() { atomicAdd(x,\n 1); }",
        "other": "void b() { my_atomicAdd(x, 1); } // atomicAdd(x, 1)",
    }
    for number, (label, code) in enumerate(codes.items()):
        source = KernelSource(language=Language.SYCL, device_code=code, plan="# atomicAdd(x, 1)")
        candidate = replace(candidate_of(label), source=source)
        fitness = 0.9 - number / 5
        verdict = await verdict_on(spec.task, candidate, fitness=fitness, cell=(number, 0, 0))
        await archive.add("first", candidate, verdict, request_id=label)

    async def shown() -> tuple[set[str], set[tuple[str, ...]]]:
        selections = [await archive.select("first") for _ in range(30)]
        elites = [e for s in selections for e in (s.parent, *s.inspirations) if e is not None]
        code = {elite.candidate.source.device_code for elite in elites}
        return code, {selection.banned_tricks for selection in selections}

    await archive.steer("first", Steering(action=SteeringAction.BAN, text="ATOMICADD(x, 1)"))
    assert await shown() == ({codes["other"]}, {("ATOMICADD(x, 1)",)})
    await archive.steer("first", Steering(action=SteeringAction.RELEASE, text="ATOMICADD(x, 1)"))
    code, banned = await shown()
    assert codes["best"] in code
    assert banned == {()}


async def test_no_more_tricks_are_banned_than_prompts_have_room_for(
    archive: Archive, spec: RunSpec
) -> None:
    await archive.create_run(spec)
    bans = [Steering(action=SteeringAction.BAN, text=f"trick {n}") for n in range(MOST_TRICKS + 1)]
    for ban in bans[:-1]:
        await archive.steer("first", ban)
    with pytest.raises(InvalidArgumentError):
        await archive.steer("first", bans[-1])
    await archive.steer("first", Steering(action=SteeringAction.RELEASE, text="trick 0"))
    await archive.steer("first", bans[-1])
    assert (await archive.select("first")).banned_tricks == tuple(b.text for b in bans[1:])
