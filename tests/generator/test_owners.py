"""A run is proposed for, renamed and forgotten by the user who began it, or an admin."""

from contextlib import nullcontext
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from generator_svc.llm.interface import ModelReply, ModelRequest
from generator_svc.store import exchanges, owners, proposals
from generator_svc.store.exchanges import CallUsage
from generator_svc.store.schema import OWNERS, SCHEMA
from generator_svc.store.store import GeneratorStore
from kernel_foundry.caller import ANYBODY, Caller, caller, set_caller
from kernel_foundry.domain.request import ProposalOutcome, ProposalRequest
from kernel_foundry.errors import AlreadyExistsError, LlmUnavailableError, PermissionDeniedError
from kernel_foundry.sql.engine import open_engine
from tests.generator.conftest import passed_elite, reply


async def test_a_run_of_another_user_is_left_alone(
    request_: ProposalRequest, samples: Any, make_generator: Any
) -> None:
    generator, models = make_generator([samples.REPLY] * 4)
    set_caller(Caller(name="ada"))
    await generator.propose(request_)
    set_caller(Caller(name="bob"))
    for change in (
        lambda: generator.propose(request_),
        lambda: generator.rename_run(request_.run, "mine"),
        lambda: generator.forget_run(request_.run),
    ):
        with pytest.raises(PermissionDeniedError, match="belongs to ada"):
            await change()
    assert len(models.asked) == 1
    set_caller(Caller(name="root", is_admin=True))
    await generator.rename_run(request_.run, "other")
    set_caller(Caller(name="ada"))
    await generator.propose(replace(request_, run="other"))
    await generator.forget_run("other")
    set_caller(Caller(name="bob"))
    await generator.propose(replace(request_, run="other"))
    set_caller(ANYBODY)
    await generator.forget_run("other")


@pytest.mark.parametrize("change", ["forget", "rename"])
async def test_a_run_that_has_the_name_since_is_left_alone(
    request_: ProposalRequest, samples: Any, make_generator: Any, change: str
) -> None:
    """Owner and change are looked up and made at once: what another user begins next is theirs."""
    generator, _ = make_generator([samples.REPLY])
    set_caller(Caller(name="ada"))
    await generator.propose(request_)
    store, run = generator._store, request_.run
    write = store.write

    def begin_another(connection: sa.Connection) -> str:
        for kept in (exchanges, proposals, owners):
            kept.forget(connection, run)
        return owners.claim(connection, run, "bob", is_proposal=True)

    async def busy(work: Any) -> Any:
        store.write = write
        result = await write(work)
        assert await write(begin_another) == "bob"
        return result

    store.write = busy
    if change == "forget":
        await generator.forget_run(run)
    else:
        await generator.rename_run(run, "mine")
    with pytest.raises(PermissionDeniedError, match="belongs to bob"):
        await generator.forget_run(run)


async def test_a_name_that_another_user_has_begun_is_taken(
    request_: ProposalRequest, samples: Any, make_generator: Any
) -> None:
    """Though nothing is kept of it yet: its first proposal is under way, or came to nothing."""
    generator, _ = make_generator([LlmUnavailableError("down"), *[samples.REPLY] * 2])
    for name in ("ada", "bob"):
        set_caller(Caller(name=name))
        run = replace(request_, run=f"{name}-s")
        with nullcontext() if name == "bob" else pytest.raises(LlmUnavailableError):
            await generator.propose(run)
    with pytest.raises(AlreadyExistsError):
        await generator.rename_run("bob-s", "ada-s")
    set_caller(Caller(name="ada"))
    await generator.propose(replace(request_, run="ada-s"))
    with pytest.raises(PermissionDeniedError, match="belongs to bob"):
        await generator.forget_run("bob-s")


async def test_only_a_proposal_begins_a_run(
    request_: ProposalRequest, samples: Any, make_generator: Any
) -> None:
    generator, _ = make_generator([samples.REPLY])
    elite = passed_elite("child")
    outcome = ProposalOutcome(
        run=request_.run, selection=0, candidate=elite.candidate, evaluation=elite.evaluation
    )
    set_caller(Caller(name="bob"))
    await generator.report(outcome)
    set_caller(Caller(name="ada"))
    await generator.propose(request_)
    await generator.report(outcome)


def _files(folder: Path) -> list[Path]:
    return [*folder.rglob("exchanges/*/*.json")]


@pytest.mark.parametrize("is_answered", [True, False])
async def test_what_comes_late_of_a_forgotten_run_is_not_another_user_s(
    request_: ProposalRequest,
    samples: Any,
    make_generator: Any,
    tmp_path: Path,
    is_answered: bool,
) -> None:
    """Its model answers, or fails, when another user has begun a run of that name."""
    late = replace(reply(samples.REPLY), usage=replace(reply("").usage, cost_usd=7.0))
    error = LlmUnavailableError("down")
    generator, models = make_generator([samples.REPLY, late if is_answered else error])
    complete = models.complete

    async def forgotten_meanwhile(asked: ModelRequest) -> ModelReply:
        models.complete = complete
        asked.on_request("scripted", is_retry=False)
        await generator.forget_run(request_.run)
        set_caller(Caller(name="bob"))
        await generator.propose(request_)
        set_caller(Caller(name="ada"))
        return await complete(asked)

    models.complete = forgotten_meanwhile
    set_caller(Caller(name="ada"))
    with nullcontext() if is_answered else pytest.raises(LlmUnavailableError):
        await generator.propose(request_)
    (spend,) = (await generator.account(request_.run)).spend
    assert (spend.requests, spend.usd) == (0, pytest.approx(0.01))
    assert len(await generator.exchanges(request_.run)) == 1
    assert len(_files(tmp_path)) == 1
    row = await generator._store.read(partial(proposals.find, run=request_.run, selection=0))
    assert row.usd == pytest.approx(0.01)


async def test_of_a_run_that_was_forgotten_while_it_was_proposed_for_nothing_is_left(
    request_: ProposalRequest, samples: Any, make_generator: Any
) -> None:
    """So that its name is anybody's."""
    generator, models = make_generator([samples.REPLY] * 2)
    complete = models.complete

    async def forgotten_meanwhile(asked: ModelRequest) -> ModelReply:
        models.complete = complete
        await generator.forget_run(request_.run)
        return await complete(asked)

    models.complete = forgotten_meanwhile
    set_caller(Caller(name="ada"))
    await generator.propose(request_)
    assert await generator.exchanges(request_.run) == ()
    set_caller(Caller(name="bob"))
    await generator.propose(request_)
    await generator.forget_run(request_.run)


async def test_a_verdict_that_comes_late_judges_nothing_of_another_user_s(
    request_: ProposalRequest, samples: Any, make_generator: Any
) -> None:
    """What was learnt from it is kept when its run's name is another user's already."""
    generator, _ = make_generator([samples.REPLY] * 2)
    elite = passed_elite("child")
    outcome = ProposalOutcome(
        run=request_.run, selection=0, candidate=elite.candidate, evaluation=elite.evaluation
    )
    learn_guidance = generator._learner._learn_guidance

    async def forgotten_meanwhile(*given: Any) -> None:
        await learn_guidance(*given)
        await generator.forget_run(request_.run)
        set_caller(Caller(name="bob"))
        await generator.propose(request_)
        set_caller(Caller(name="ada"))

    generator._learner._learn_guidance = forgotten_meanwhile
    set_caller(Caller(name="ada"))
    await generator.propose(request_)
    await generator.report(outcome)
    row = await generator._store.read(partial(proposals.find, run=request_.run, selection=0))
    assert row.outcome is None


async def test_what_nobody_is_known_to_have_begun_is_left_to_an_admin(
    request_: ProposalRequest, samples: Any, make_generator: Any
) -> None:
    """As of a run of a store that had no owners yet."""
    generator, _ = make_generator([samples.REPLY])
    await generator.propose(request_)
    await generator._store.write(partial(owners.forget, run=request_.run))
    for name in ("bob", "ada"):
        set_caller(Caller(name=name))
        for change in (
            lambda: generator.forget_run(request_.run),
            lambda: generator.rename_run(request_.run, "mine"),
            lambda: generator.propose(request_),
        ):
            with pytest.raises(PermissionDeniedError, match="belongs to no user"):
                await change()
    set_caller(Caller(name="root", is_admin=True))
    await generator.forget_run(request_.run)


@pytest.mark.parametrize("has_owners", [False, True])
async def test_a_store_of_the_first_schema_is_migrated(store_url: str, has_owners: bool) -> None:
    """Some have owners already. Its runs are nobody's."""
    engine, _ = open_engine(store_url, replace(SCHEMA, head="0001"))
    assert not sa.inspect(engine).has_table("owners")
    with engine.begin() as connection:
        if has_owners:
            OWNERS.create(connection)
        usage = {"m": CallUsage(requests=1)}
        exchanges.add_call(connection, "old", name=None, usage=usage)
    engine.dispose()
    store = GeneratorStore(store_url)
    for run, owner in (("old", ""), ("new", "ada")):
        claim = partial(owners.claim, run=run, owner="ada", is_proposal=True)
        assert await store.write(claim) == await store.write(claim) == owner
    await store.close()


async def test_a_caller_is_known_within_its_own_call_alone() -> None:
    """Contexts of other tasks stay as they are."""
    copy_context().run(set_caller, Caller(name="eve"))
    assert caller() == ANYBODY
