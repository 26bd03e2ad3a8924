"""Guidance in a whole generator: shown, credited, edited in the background, and switched off."""

import asyncio
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from generator_svc.exchange_log import ExchangeLog
from generator_svc.experience.library import ExperienceLibrary
from generator_svc.generator import LocalGenerator
from generator_svc.llm.interface import ModelReply, ModelRequest
from generator_svc.meta_prompts.editor import editing_prompt
from generator_svc.meta_prompts.population import MetaPrompts
from generator_svc.meta_prompts.records import prompt_record
from generator_svc.meta_prompts.sections import seed_sections
from generator_svc.meta_prompts.tables import SectionsRow
from generator_svc.store.store import GeneratorStore
from kernel_foundry.domain.exchange import ExchangePurpose
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.mechanisms import EXPERIENCE, META_PROMPTS
from kernel_foundry.domain.request import ProposalOutcome, ProposalRequest
from kernel_foundry.domain.task_limits import LONGEST_INSTRUCTIONS
from tests.generator.conftest import Samples, ScriptedModels, reply

ADVICE = "- Name the types that the compiler knows."
EDIT = f"Types.\n<<<<<<< SEARCH pitfalls\n=======\n{ADVICE}\n>>>>>>> REPLACE\n"


@dataclass(kw_only=True)
class WritersAndEditor(ScriptedModels):
    """Every writer answers alike; the editor answers once `may_edit` is set."""

    text: str
    script: list[str | ModelReply | Exception] = field(default_factory=list)
    may_edit: asyncio.Event = field(default_factory=asyncio.Event)
    edits_asked: int = 0

    async def complete(self, request: ModelRequest) -> ModelReply:
        if "# The guidance as it is" not in request.messages[1].content:
            self.asked.append(request)
            return reply(self.text)
        self.edits_asked += 1
        await self.may_edit.wait()
        return reply(EDIT)


@pytest.fixture
def models(samples: Samples) -> WritersAndEditor:
    return WritersAndEditor(text=samples.REPLY)


@pytest.fixture
def generator(models: WritersAndEditor, tmp_path: Path) -> LocalGenerator:
    store = GeneratorStore(f"sqlite:///{tmp_path / 'generator.db'}")
    return LocalGenerator(
        models=models,
        store=store,
        exchanges=ExchangeLog(tmp_path / "exchanges"),
        library=ExperienceLibrary(store),
    )


def outcome(request: ProposalRequest, samples: Samples) -> ProposalOutcome:
    """Return that what was proposed did not compile."""
    failed = samples.failed_elite("x")
    return ProposalOutcome(
        run=request.run,
        selection=request.selection.sequence,
        candidate=failed.candidate,
        evaluation=failed.evaluation,
    )


async def propose_and_report(
    generator: LocalGenerator, request: ProposalRequest, samples: Samples, *, count: int
) -> None:
    for sequence in range(1, count + 1):
        selection = replace(request.selection, sequence=sequence)
        asked = replace(request, selection=selection)
        await generator.propose(asked)
        await generator.report(outcome(asked, samples))
        await generator.report(outcome(asked, samples))


async def stored(folder: Path) -> tuple[SectionsRow, ...]:
    store = GeneratorStore(f"sqlite:///{folder / 'generator.db'}")
    rows = await MetaPrompts(store).list_prompts(Language.SYCL)
    await store.close()
    return rows


@pytest.mark.slow
async def test_guidance_is_edited_beside_the_proposals(
    generator: LocalGenerator,
    models: WritersAndEditor,
    request_: ProposalRequest,
    samples: Samples,
    tmp_path: Path,
) -> None:
    request = replace(request_, without=(EXPERIENCE,))
    await propose_and_report(generator, request, samples, count=12)
    assert models.edits_asked == 1
    assert len(models.asked) == 12  # nobody waited for the editor
    models.may_edit.set()
    for _ in range(1_000):  # the edit is stored some time after the reply
        if len(await stored(tmp_path)) > 1:
            break
    exchanges = await generator.exchanges(request.run)
    purposes = [exchange.purpose for exchange in exchanges]
    assert purposes.count(ExchangePurpose.META_PROMPT) == 1
    shown = [
        await generator.propose(
            replace(request, selection=replace(request.selection, sequence=sequence))
        )
        for sequence in range(20, 24)
    ]
    assert all(proposal.candidate for proposal in shown)
    with_advice = [r for r in models.asked[-4:] if ADVICE in r.messages[1].content]
    assert len(with_advice) == 1
    await generator.close()
    seed, trial = await stored(tmp_path)
    assert (seed.uses, seed.outcomes) == (12, {"compile_error": 12})
    assert (trial.uses, trial.parent) == (0, seed.id)


@pytest.mark.slow
async def test_an_editor_that_hangs_holds_nothing_up(
    generator: LocalGenerator,
    models: WritersAndEditor,
    request_: ProposalRequest,
    samples: Samples,
    tmp_path: Path,
) -> None:
    await propose_and_report(generator, request_, samples, count=11)
    assert models.edits_asked == 1
    await asyncio.wait_for(generator.close(), timeout=60.0)
    assert len(await stored(tmp_path)) == 1


@pytest.mark.slow
async def test_guidance_that_there_was_no_room_for_is_not_judged(
    generator: LocalGenerator, request_: ProposalRequest, samples: Samples, tmp_path: Path
) -> None:
    instructions = ("Mind the borders. " * 4_000)[:LONGEST_INSTRUCTIONS]
    task = replace(request_.task, reference=f"# {instructions}", instructions=instructions)
    parent = samples.failed_elite("x" * 60_000)
    request = replace(
        request_,
        task=task,
        selection=replace(request_.selection, parent=parent),
        without=(EXPERIENCE,),
    )
    await propose_and_report(generator, request, samples, count=2)
    await generator.close()
    assert [row.uses for row in await stored(tmp_path)] == [0]


@pytest.mark.slow
async def test_switched_off_the_seed_is_shown_and_nothing_learnt(
    generator: LocalGenerator,
    models: WritersAndEditor,
    request_: ProposalRequest,
    samples: Samples,
    tmp_path: Path,
) -> None:
    request = replace(request_, without=(META_PROMPTS,))
    await propose_and_report(generator, request, samples, count=11)
    assert models.edits_asked == 0
    assert seed_sections(Language.SYCL).pitfalls in models.asked[-1].messages[1].content
    await generator.close()
    (seed,) = await stored(tmp_path)
    assert seed.uses == 0


def test_records_do_not_tell_what_is_held_out(request_: ProposalRequest, samples: Samples) -> None:
    failed = outcome(request_, samples)
    assert samples.HELD_OUT in failed.evaluation.findings[0].message
    record = prompt_record(1, request_, failed, gain=0.0)
    prompt = editing_prompt(Language.SYCL, seed_sections(Language.SYCL), (record,))
    assert "unknown type" in prompt[1].content
    assert not any(samples.HELD_OUT in message.content for message in prompt)
