"""The population of guidance in its store: choice, credit, edits, and what outlives a process."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from generator_svc.held_out import HeldOut
from generator_svc.meta_prompts import guidance_choice
from generator_svc.meta_prompts.guidance_choice import PromptState
from generator_svc.meta_prompts.population import MetaPrompts
from generator_svc.meta_prompts.records import PromptRecord
from generator_svc.meta_prompts.sections import seed_sections
from generator_svc.store.store import GeneratorStore
from kernel_foundry.domain.candidate import KernelSource, Operator
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.exchange import ChatMessage
from kernel_foundry.domain.finding import Finding, FindingKind, Severity
from kernel_foundry.domain.language import Language
from kernel_foundry.errors import LlmQuotaError

SYCL = Language.SYCL
ADVICE = "- Mask what lies behind the end of a row."
GOOD_EDIT = f"The tails fail.\n<<<<<<< SEARCH pitfalls\n=======\n{ADVICE}\n>>>>>>> REPLACE\n"
OTHER_EDIT = "Or so.\n<<<<<<< SEARCH analysis\n=======\n- Think twice.\n>>>>>>> REPLACE\n"
BAD_EDIT = "<<<<<<< SEARCH pitfalls\n- Not there.\n=======\n- X.\n>>>>>>> REPLACE\n"


def record(prompt: int, outcome: EvaluationOutcome, gain: float = 0.0) -> PromptRecord:
    passed = outcome is EvaluationOutcome.PASSED
    finding = Finding(
        kind=FindingKind.BORDER_MISMATCH,
        severity=Severity.ERROR,
        message="elements behind the border differ",
        hint="mask the tail",
    )
    return PromptRecord(
        prompt=prompt,
        operator=Operator.MUTATE,
        outcome=outcome,
        gain=gain,
        findings=() if passed else (finding,),
        source=KernelSource(language=SYCL, device_code=f"void k_{outcome}();", plan="launch"),
        held_out=HeldOut(names=("rows=3",), sizes=frozenset()),
    )


FAILURES = tuple(record(1, EvaluationOutcome.WRONG_RESULT) for _ in range(6))


class Editor:
    """Answers with the replies it is given, in turn, the last one for ever."""

    def __init__(self, *replies: str) -> None:
        self._replies = list(replies)
        self.asked: list[tuple[ChatMessage, ...]] = []

    async def __call__(self, messages: tuple[ChatMessage, ...]) -> str:
        self.asked.append(messages)
        return self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[GeneratorStore]:
    opened = GeneratorStore(f"sqlite:///{tmp_path / 'generator.db'}")
    yield opened
    await opened.close()


@pytest.fixture
def prompts(store: GeneratorStore) -> MetaPrompts:
    return MetaPrompts(store, clock=lambda: 1.0)


async def choose(prompts: MetaPrompts, sequence: int = 0, run: str = "r") -> int:
    chosen = await prompts.choose(run=run, language=SYCL, sequence=sequence, seed=0)
    return chosen.id


async def credit(
    prompts: MetaPrompts,
    prompt: int,
    number: int,
    *,
    gain: float = 0.0,
    outcome: EvaluationOutcome = EvaluationOutcome.WRONG_RESULT,
) -> None:
    await prompts.credit(
        prompt,
        run="r",
        gain=gain,
        outcome=outcome,
        request_id=f"r/{number}",
    )


async def test_the_seed_is_chosen_first_and_kept_by_language(prompts: MetaPrompts) -> None:
    chosen = await prompts.choose(run="r", language=SYCL, sequence=0, seed=0)
    assert chosen.sections == seed_sections(SYCL)
    other = await prompts.choose(run="r", language=Language.CUDA, sequence=0, seed=0)
    assert other.sections == seed_sections(Language.CUDA)
    assert other.id != chosen.id
    (row,) = await prompts.list_prompts(SYCL)
    assert row.state is PromptState.SEED


async def test_a_request_credits_once(prompts: MetaPrompts) -> None:
    seed = await choose(prompts)
    await credit(prompts, seed, 0, gain=0.25, outcome=EvaluationOutcome.PASSED)
    await credit(prompts, seed, 0, gain=0.25, outcome=EvaluationOutcome.PASSED)
    await credit(prompts, seed, 1)
    (row,) = await prompts.list_prompts(SYCL)
    assert row.uses == 2
    assert row.gain_sum == 0.25
    assert row.outcomes == {"passed": 1, "wrong_result": 1}


async def test_several_processes_share_a_population(store_url: str) -> None:
    stores = [GeneratorStore(store_url) for _ in range(3)]
    sides = [MetaPrompts(store) for store in stores]
    seeds = await asyncio.gather(*(choose(side) for side in sides))
    assert len(set(seeds)) == 1
    await asyncio.gather(*(credit(side, seeds[0], n) for n in range(10) for side in sides))
    (row,) = await sides[0].list_prompts(SYCL)
    assert (row.uses, row.outcomes) == (10, {"wrong_result": 10})
    for store in stores:
        await store.close()


async def test_an_edit_is_due_after_ten_credits_and_not_while_one_is_on_trial(
    prompts: MetaPrompts,
) -> None:
    seed = await choose(prompts)
    for number in range(9):
        await credit(prompts, seed, number)
    assert not await prompts.is_due(SYCL)
    await credit(prompts, seed, 9)
    assert await prompts.is_due(SYCL)
    assert not await prompts.is_due(Language.CUDA)
    assert await prompts.evolve("r", SYCL, Editor(GOOD_EDIT), FAILURES) is not None
    for number in range(10, 40):
        await credit(prompts, seed, number)
    assert not await prompts.is_due(SYCL)


async def test_an_edit_goes_on_trial_and_is_promoted_when_it_pays(prompts: MetaPrompts) -> None:
    seed = await choose(prompts)
    child = await prompts.evolve("r", SYCL, Editor(GOOD_EDIT), FAILURES)
    assert child is not None
    picks = [await choose(prompts, sequence) for sequence in range(40)]
    assert picks.count(child) == 10
    for number, pick in enumerate(picks):
        gain = 0.4 if pick == child else 0.0
        await credit(prompts, pick, number, gain=gain)
    rows = {row.id: row for row in await prompts.list_prompts(SYCL)}
    assert rows[child].state is PromptState.ACCEPTED
    assert rows[child].parent == seed
    assert ADVICE in rows[child].sections.pitfalls
    later = [await choose(prompts, sequence) for sequence in range(40, 80)]
    assert later.count(child) == 40


@pytest.mark.slow
async def test_a_worse_edit_is_dropped_and_its_reason_told_to_the_next_editor(
    prompts: MetaPrompts,
) -> None:
    seed = await choose(prompts)
    child = await prompts.evolve("r", SYCL, Editor(GOOD_EDIT), FAILURES)
    assert child is not None
    uses = 0
    for number in range(200):
        pick = await choose(prompts, number)
        uses += pick == child
        await credit(prompts, pick, number, gain=0.3 * (pick == seed))
    rows = {row.id: row for row in await prompts.list_prompts(SYCL)}
    assert rows[child].state is PromptState.DROPPED
    assert uses == guidance_choice.TRIAL_CREDITS
    editor = Editor(OTHER_EDIT)
    await prompts.evolve("r", SYCL, editor, FAILURES)
    assert "The tails fail." in editor.asked[0][1].content


async def test_the_editor_sees_the_records_of_the_guidance_it_edits(prompts: MetaPrompts) -> None:
    await choose(prompts)
    editor = Editor(GOOD_EDIT)
    best = record(1, EvaluationOutcome.PASSED, 0.31)
    foreign = record(99, EvaluationOutcome.CRASHED)
    await prompts.evolve("r", SYCL, editor, (*FAILURES, best, foreign))
    system, user = editor.asked[0]
    assert system.role == "system"
    assert "| wrong_result | 6 | 0.000 |" in user.content
    assert "| passed | 1 | 0.310 |" in user.content
    assert "| border_mismatch | 6 |" in user.content
    assert "void k_passed();" in user.content
    assert "void k_wrong_result();" in user.content
    assert "Hint: mask the tail" in user.content
    assert "crashed" not in user.content
    assert seed_sections(SYCL).pitfalls in user.content


async def test_edits_that_do_not_apply_are_asked_for_once_more(prompts: MetaPrompts) -> None:
    await choose(prompts)
    editor = Editor(BAD_EDIT, GOOD_EDIT)
    assert await prompts.evolve("r", SYCL, editor, FAILURES) is not None
    first, second = editor.asked
    assert second[: len(first)] == first
    assert second[-2] == ChatMessage(role="assistant", content=BAD_EDIT)
    assert "Not there" in second[-1].content


async def test_edits_that_never_apply_are_recorded_and_no_more(prompts: MetaPrompts) -> None:
    await choose(prompts)
    editor = Editor(BAD_EDIT)
    assert await prompts.evolve("r", SYCL, editor, FAILURES) is None
    assert len(editor.asked) == 2
    (edit,) = await prompts.list_edits(SYCL)
    assert edit.result == "refused"
    assert "pitfalls" in edit.reason
    assert len(await prompts.list_prompts(SYCL)) == 1


async def test_the_same_text_is_not_tried_twice(prompts: MetaPrompts) -> None:
    await choose(prompts)
    assert await prompts.evolve("r", SYCL, Editor(GOOD_EDIT), FAILURES) is not None
    assert await prompts.evolve("r", SYCL, Editor(GOOD_EDIT), FAILURES) is None
    assert [e.result for e in await prompts.list_edits(SYCL)] == ["duplicate", "added"]


async def test_what_was_dropped_is_not_tried_again(prompts: MetaPrompts) -> None:
    seed = await choose(prompts)
    child = await prompts.evolve("r", SYCL, Editor(GOOD_EDIT), FAILURES)
    assert child is not None
    for number in range(guidance_choice.TRIAL_CREDITS):
        await credit(prompts, seed, number, gain=0.3, outcome=EvaluationOutcome.PASSED)
        await credit(prompts, child, 100 + number)
    assert await prompts.evolve("r", SYCL, Editor(GOOD_EDIT), FAILURES) is None
    states = {row.id: row.state for row in await prompts.list_prompts(SYCL)}
    assert states[child] is PromptState.DROPPED
    assert [e.result for e in await prompts.list_edits(SYCL)] == ["duplicate", "added"]


async def test_a_model_that_does_not_answer_is_data(prompts: MetaPrompts) -> None:
    await choose(prompts)

    async def ask(_: tuple[ChatMessage, ...]) -> str:
        raise LlmQuotaError("no money left", budget="cost_usd")

    assert await prompts.evolve("r", SYCL, ask, FAILURES) is None
    (edit,) = await prompts.list_edits(SYCL)
    assert (edit.result, edit.reason) == ("unanswered", "no money left")


async def test_without_enough_records_nobody_is_asked(prompts: MetaPrompts) -> None:
    await choose(prompts)
    editor = Editor(GOOD_EDIT)
    assert await prompts.evolve("r", SYCL, editor, FAILURES[:2]) is None
    assert editor.asked == []


async def test_a_cancelled_edit_leaves_nothing_and_can_be_done_again(prompts: MetaPrompts) -> None:
    await choose(prompts)
    asked = asyncio.Event()

    async def hang(_: tuple[ChatMessage, ...]) -> str:
        asked.set()
        await asyncio.Event().wait()
        return GOOD_EDIT

    task = asyncio.create_task(prompts.evolve("r", SYCL, hang, FAILURES))
    await asked.wait()
    assert await prompts.evolve("r", SYCL, Editor(GOOD_EDIT), FAILURES) is None
    assert not await prompts.is_due(SYCL)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await prompts.list_edits(SYCL) == ()
    assert await prompts.evolve("r", SYCL, Editor(GOOD_EDIT), FAILURES) is not None


async def test_the_population_is_bounded(store: GeneratorStore) -> None:
    prompts = MetaPrompts(store, most_members=3)
    await choose(prompts)
    for number in range(4):
        reply = GOOD_EDIT.replace("row", f"row {number}")
        assert await prompts.evolve("r", SYCL, Editor(reply), FAILURES) is not None
    states = [row.state for row in await prompts.list_prompts(SYCL)]
    assert states[0] is PromptState.SEED
    assert len(states) == 5
    assert states.count(PromptState.DROPPED) == 2


async def test_a_restart_goes_on_with_the_same_population(store_url: str) -> None:
    first = GeneratorStore(store_url)
    prompts = MetaPrompts(first)
    seed = await choose(prompts)
    child = await prompts.evolve("r", SYCL, Editor(GOOD_EDIT), FAILURES)
    for number in range(30):
        await credit(prompts, await choose(prompts, number), number, gain=0.1 * (number % 3))
    before = await prompts.list_prompts(SYCL)
    picks = [await choose(prompts, sequence) for sequence in range(30)]
    await first.close()
    second = GeneratorStore(store_url)
    again = MetaPrompts(second)
    assert await again.list_prompts(SYCL) == before
    assert {seed, child} == {row.id for row in before}
    assert [await choose(again, sequence) for sequence in range(30)] == picks
    await credit(again, seed, 0)
    assert await again.list_prompts(SYCL) == before
    await second.close()


async def test_a_seed_that_a_person_edits_takes_the_old_ones_place(
    prompts: MetaPrompts, store: GeneratorStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = await choose(prompts)
    edited = seed_sections(Language.CUDA)
    monkeypatch.setattr("generator_svc.meta_prompts.population.seed_sections", lambda _: edited)
    later = MetaPrompts(store)
    chosen = await later.choose(run="r", language=SYCL, sequence=0, seed=0)
    assert chosen.sections == edited
    states = {row.id: row.state for row in await later.list_prompts(SYCL)}
    assert states == {old: PromptState.DROPPED, chosen.id: PromptState.SEED}
