"""A recorded run made again without a model comes out equal; what was changed is found."""

from pathlib import Path

import pytest

from archive_svc.archive import LocalArchive
from archive_svc.run.run_file import export_run
from kernel_foundry.domain.account import RunAccount
from kernel_foundry.domain.candidate import Operator
from kernel_foundry.domain.steering import Steering, SteeringAction
from kernel_foundry.errors import (
    AlreadyExistsError,
    CorruptArchiveError,
    InvalidArgumentError,
    RunNotFoundError,
)
from kernel_foundry.sdk.replay.replay import ReplayOutcome, replay
from tests.generators import generator_in
from tests.sdk.replay.by_hand import (
    Scripted,
    add,
    archived,
    change,
    evaluate,
    forge,
    hand_written,
    propose,
)
from tests.sdk.replay.recorded import SPEC, Recorded


async def replayed(recorded: Recorded, *, run: str = "recorded", into: str = "") -> ReplayOutcome:
    generator = recorded.generator()
    try:
        return await replay(recorded.store, run, generator, into=into)
    finally:
        await generator.close()


async def test_a_run_comes_out_equal_to_the_bit(recorded: Recorded, tmp_path: Path) -> None:
    again = f"sqlite:///{tmp_path / 'again.db'}"
    outcome = await replayed(recorded, into=again)
    assert outcome.difference is None
    assert outcome.replayed is not None
    export_run(recorded.store, "recorded", tmp_path / "one.gz")
    export_run(again, "recorded", tmp_path / "other.gz")
    assert (tmp_path / "one.gz").read_bytes() == (tmp_path / "other.gz").read_bytes()


async def test_the_recorded_run_has_all_that_makes_runs_hard(recorded_once: Recorded) -> None:
    history = await archived(recorded_once)
    outcome = await replayed(recorded_once)
    counts = outcome.replayed
    assert counts is not None
    assert counts.evaluations == len(history) >= 100
    assert (counts.restarts, counts.by_hand, counts.unselected) == (1, 0, 0)
    assert counts.dropped >= 3  # repeats
    assert counts.judged_again >= 1  # the promotion at the end; sweeps, as their turns come
    assert counts.remade == sum(t.selection is not None for t in history)
    assert {t.candidate.operator for t in history} >= {
        Operator.SEED,
        Operator.MUTATE,
        Operator.COMBINE,
        Operator.REPAIR,
    }
    assert any(not t.candidate.source.plan for t in history)  # replies without a candidate
    assert {t.candidate.model for t in history} == set(SPEC.models)


async def test_the_run_made_again_can_be_kept_once(recorded: Recorded, tmp_path: Path) -> None:
    again = f"sqlite:///{tmp_path / 'again.db'}"
    await replayed(recorded, into=again)
    with pytest.raises(AlreadyExistsError):
        await replayed(recorded, into=again)
    with pytest.raises(AlreadyExistsError):
        await replayed(recorded, into=recorded.store)
    with pytest.raises(RunNotFoundError):
        await replayed(recorded, run="never-made")


async def test_a_selection_lost_with_its_archive_is_told_to_the_next(tmp_path: Path) -> None:
    """As when an archive service is started anew under a search that goes on."""
    recorded = Recorded(folder=tmp_path)
    generator = generator_in(tmp_path, Scripted())
    archive = LocalArchive(recorded.store)
    await archive.create_run(SPEC)
    first, lost = [await propose(archive, generator) for _ in range(2)]
    await add(archive, first)
    await archive.close()
    archive = LocalArchive(recorded.store)
    await add(archive, lost)
    await add(archive, await propose(archive, generator))
    await archive.close()
    await generator.close()
    outcome = await replayed(recorded)
    assert outcome.difference is None
    assert outcome.replayed is not None
    counts = outcome.replayed
    assert (counts.remade, counts.unselected, counts.restarts) == (2, 1, 1)


async def test_a_renamed_run_comes_out_equal(recorded: Recorded) -> None:
    """Exchanges and spending are found by its new name, and by no other."""
    archive, generator = LocalArchive(recorded.store), recorded.generator()
    await archive.rename_run("recorded", "other")
    await archive.close()
    before = (await generator.account("recorded")).spend
    await generator.rename_run("recorded", "other")
    assert (await generator.account("recorded"), await generator.exchanges("recorded")) == (
        RunAccount(run="recorded"),
        (),
    )
    assert (await generator.account("other")).spend == before
    assert {exchange.run for exchange in await generator.exchanges("other")} == {"other"}
    await generator.rename_run("unknown", "another")
    with pytest.raises(AlreadyExistsError):
        await generator.rename_run("unknown", "other")
    await generator.close()
    assert (await replayed(recorded, run="other")).difference is None


async def test_a_steered_run_comes_out_equal(tmp_path: Path) -> None:
    """Each selection heeds what was asked before it, also after a restart."""
    recorded = Recorded(folder=tmp_path)
    generator = generator_in(tmp_path, Scripted())
    archive = LocalArchive(recorded.store)
    await archive.create_run(SPEC)
    mine = hand_written("given")
    await archive.steer("recorded", Steering(action=SteeringAction.INJECT, source=mine.source))
    await archive.add("recorded", mine, await evaluate(mine), request_id="given")
    cell = (await archive.elites("recorded"))[0].measures
    for action in (SteeringAction.PIN, SteeringAction.BAN, SteeringAction.RELEASE):
        await archive.steer("recorded", Steering(action=action, cell=cell))
        await archive.steer("recorded", Steering(action=SteeringAction.HINT, text=action.value))
        for _ in range(4):
            await add(archive, await propose(archive, generator))
        if action is SteeringAction.PIN:
            await archive.close()
            archive = LocalArchive(recorded.store)
    journals = [one.journal for one in await archive.evaluations("recorded")]
    await archive.close()
    await generator.close()
    steered = [j.partition(" s")[0] for j in journals if "k" in j]
    assert steered == ["@0 k1", "@0 k3", "@5 k5", "@5 k7"]
    outcome = await replayed(recorded)
    assert outcome.difference is None
    assert outcome.replayed is not None
    assert (outcome.replayed.restarts, outcome.replayed.by_hand) == (1, 1)


async def test_a_useless_combination_lost_with_its_archive_is_told_to_the_next(
    tmp_path: Path,
) -> None:
    """It combines nothing, and is archived with one parent, though its edits are of another."""
    recorded, models = Recorded(folder=tmp_path), Scripted()
    generator = generator_in(tmp_path, models)
    archive = LocalArchive(recorded.store)
    await archive.create_run(SPEC)
    for _ in range(8):
        await add(archive, await propose(archive, generator))
    models.writes_edits = True
    selection, candidate = await propose(archive, generator)
    while selection.operator is not Operator.COMBINE:
        selection, candidate = await propose(archive, generator)
    assert (len(candidate.parents), candidate.source.plan) == (1, "")
    await archive.close()
    archive = LocalArchive(recorded.store)
    await add(archive, (selection, candidate))
    await archive.close()
    await generator.close()
    outcome = await replayed(recorded)
    assert outcome.difference is None
    assert outcome.replayed is not None
    assert outcome.replayed.unselected == 1


@pytest.mark.parametrize("is_archived", [True, False], ids=["archived", "in-flight"])
async def test_a_run_that_goes_on_is_not_called_different(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_archived: bool
) -> None:
    recorded, generator = Recorded(folder=tmp_path), generator_in(tmp_path, Scripted())
    archive = LocalArchive(recorded.store)
    await archive.create_run(SPEC)
    for _ in range(2):
        await add(archive, await propose(archive, generator))

    asked = generator.account

    async def go_on(run: str) -> RunAccount:
        proposed = await propose(archive, generator)
        if is_archived:
            await add(archive, proposed)
        return await asked(run)

    monkeypatch.setattr(generator, "account", go_on)
    with pytest.raises(InvalidArgumentError, match="goes on"):
        await replay(recorded.store, "recorded", generator)
    monkeypatch.undo()
    await archive.close()
    assert (await replay(recorded.store, "recorded", generator)).difference is None
    await generator.close()


async def test_what_is_added_by_hand_is_judged_again(tmp_path: Path) -> None:
    recorded = Recorded(folder=tmp_path)
    archive = LocalArchive(recorded.store)
    await archive.create_run(SPEC)
    by_hand = hand_written("by hand")
    evaluation = await evaluate(by_hand)
    for number in range(2):
        await archive.add("recorded", by_hand, evaluation, request_id=str(number))
    await archive.close()
    outcome = await replayed(recorded)
    assert outcome.replayed is not None
    assert (outcome.replayed.by_hand, outcome.replayed.judged_again) == (1, 1)


@pytest.mark.parametrize("way", ["at once", "in turn", "same opening"])
async def test_several_archives_at_once_are_refused(tmp_path: Path, way: str) -> None:
    recorded = Recorded(folder=tmp_path)
    archives = [LocalArchive(recorded.store) for _ in range(2)]
    await archives[0].create_run(SPEC)
    order = {"at once": (0, 0, 1, 0), "in turn": (0, 1, 1, 0), "same opening": (0, 1, 1)}[way]
    if way == "same opening":
        for archive in archives:
            await archive.stats("recorded")
    for number, position in enumerate(order):
        archive = archives[position]
        await archive.select("recorded")
        by_hand = hand_written(str(number))
        evaluation = await evaluate(by_hand)
        await archive.add("recorded", by_hand, evaluation, request_id=str(number))
    for archive in archives:
        await archive.close()
    with pytest.raises(InvalidArgumentError, match="several archive services"):
        await replayed(recorded)


async def test_a_run_of_an_older_version_is_refused(recorded: Recorded) -> None:
    change(recorded, "UPDATE evaluations SET journal = '' WHERE sequence = 40")
    with pytest.raises(InvalidArgumentError, match=r"beyond evaluation 39: .* was not recorded"):
        await replayed(recorded)


async def test_a_damaged_journal_is_named(recorded: Recorded) -> None:
    change(recorded, "UPDATE evaluations SET journal = '@0 s' WHERE sequence = 40")
    with pytest.raises(CorruptArchiveError, match="evaluation 40"):
        await replayed(recorded)


async def test_a_generator_that_does_not_know_the_run_is_refused(
    recorded: Recorded, tmp_path: Path
) -> None:
    stranger = generator_in(tmp_path, Scripted())
    with pytest.raises(InvalidArgumentError, match="has no exchange of run recorded"):
        await replay(recorded.store, "recorded", stranger)
    await stranger.close()


@pytest.mark.parametrize(
    ("column", "value", "what"),
    [
        ("island", "nowhere", "island"),
        ("fitness", 0.123, "stats"),
        ("cost_usd", 7.0, "run"),
        ("selection", 0, "digest"),
    ],
)
async def test_a_changed_row_is_found_and_named(
    recorded: Recorded, column: str, value: object, what: str
) -> None:
    history = await archived(recorded)
    # Statistics go by the newest verdict on each candidate.
    rows = {t.candidate.digest: t for t in history}.values() if what == "stats" else history
    best = max(rows, key=lambda t: t.evaluation.fitness)
    change(
        recorded, f"UPDATE evaluations SET {column} = ? WHERE sequence = ?", value, best.sequence
    )
    outcome = await replayed(recorded)
    assert outcome.difference is not None
    assert outcome.difference.what == what


@pytest.mark.parametrize(
    ("pattern", "replacement", "what"),
    [
        ('"operator":"repair"', '"operator":"mutate"', "operator"),
        ('"generation":2', '"generation":7', "generation"),
        ('"model":"', '"model":"another-', "model"),
        ('"prompt_digest":"', '"prompt_digest":"0', "prompt_digest"),
    ],
)
async def test_a_changed_candidate_is_found_and_named(
    recorded: Recorded, pattern: str, replacement: str, what: str
) -> None:
    statement = (
        "UPDATE evaluation_texts SET candidate = replace(candidate, ?, ?) WHERE sequence = "
        "(SELECT max(evaluations.sequence) FROM evaluations "
        "JOIN evaluation_texts USING (run_id, sequence) "
        "WHERE candidate LIKE ? AND selection IS NOT NULL)"
    )
    change(recorded, statement, pattern, replacement, f"%{pattern}%")
    outcome = await replayed(recorded)
    assert outcome.difference is not None
    assert outcome.difference.what == what
    assert outcome.difference.where.startswith("evaluation ")


async def test_a_changed_exchange_is_found_and_named(recorded: Recorded) -> None:
    path = next(iter(sorted((recorded.folder / "exchanges").glob("*/*.json"))))
    path.write_text(path.read_text().replace("relu", "gelu"))
    with pytest.raises(CorruptArchiveError, match=path.name):
        await replayed(recorded)


async def test_an_exchange_forged_with_its_name_is_found_and_named(recorded: Recorded) -> None:
    history = [t for t in await archived(recorded) if t.selection is not None]
    selection = history[70].selection
    assert selection is not None
    await forge(recorded, selection)
    outcome = await replayed(recorded)
    assert outcome.difference is not None
    expected = f"evaluation {history[70].sequence} (selection {selection})"
    assert (outcome.difference.where, outcome.difference.what) == (expected, "digest")
