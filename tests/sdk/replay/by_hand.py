"""Runs made step by step, and records that somebody changed."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from archive_svc.archive import LocalArchive
from generator_svc.exchange_log import ExchangeLog
from generator_svc.llm.interface import ModelFacts, ModelReply, ModelRequest
from kernel_foundry.domain.archive import ArchivedEvaluation, Selection
from kernel_foundry.domain.candidate import Candidate, KernelSource
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.exchange import Exchange, FinishReason
from kernel_foundry.domain.plain import from_json
from kernel_foundry.domain.request import EvaluationRequest, ProposalRequest, TokenUsage
from kernel_foundry.ports import Generator
from kernel_foundry.sdk.loop.proposer import candidate_of
from tests.sdk.replay.recorded import CANDIDATE, EDIT, SPEC, VARIANT, Recorded, UnevenEvaluator

Proposed = tuple[Selection, Candidate]


class Scripted:
    """Models that write one whole candidate after the other, or edits of what they are shown."""

    def __init__(self) -> None:
        self.writes_edits = False
        self._count = 0

    async def check(self, models: tuple[str, ...]) -> None:
        """Take every model."""

    async def facts(self, model: str) -> ModelFacts:
        """Return that nothing is known of `model`."""
        return ModelFacts(
            input_usd_per_token=None, output_usd_per_token=None, max_output_tokens=None
        )

    async def complete(self, request: ModelRequest) -> ModelReply:
        self._count += 1
        text = CANDIDATE.format(number=3 * self._count + 1, tune="", block=16)
        if self.writes_edits:
            prompt = "\n".join(message.content for message in request.messages)
            text = EDIT.format(old=VARIANT.findall(prompt)[0], new=self._count)
        usage = TokenUsage(
            model=request.models[0], input_tokens=9, output_tokens=3, cost_usd=0.5, latency_ms=1.0
        )
        return ModelReply(text=text, finish=FinishReason.STOP, usage=usage)

    async def list_models(self) -> tuple[str, ...]:
        """Return those of the run."""
        return SPEC.models

    async def close(self) -> None:
        """Do nothing: nothing is held."""


async def propose(archive: LocalArchive, generator: Generator) -> Proposed:
    selection = await archive.select("recorded")
    proposal = await generator.propose(
        ProposalRequest(
            run="recorded",
            task=SPEC.task,
            admission=await UnevenEvaluator().admit(SPEC.task),
            selection=selection,
            models=SPEC.models,
            seed=SPEC.seed,
        )
    )
    return selection, candidate_of(proposal, selection, SPEC.language)


async def add(archive: LocalArchive, proposed: Proposed) -> None:
    """Judge what was proposed, and archive the verdict."""
    selection, candidate = proposed
    await archive.add(
        "recorded",
        candidate,
        await evaluate(candidate),
        request_id=candidate.digest,
        selection=selection.sequence,
    )


def hand_written(words: str) -> Candidate:
    """Return a candidate that no model wrote."""
    return Candidate(
        source=KernelSource(
            language=SPEC.language, device_code=f"// {words}", plan="def launch(out):\n    pass"
        )
    )


async def evaluate(candidate: Candidate) -> Evaluation:
    return await UnevenEvaluator().evaluate(
        EvaluationRequest(task=SPEC.task, device=SPEC.device, source=candidate.source)
    )


async def archived(recorded: Recorded) -> list[ArchivedEvaluation]:
    """Return the run's evaluations."""
    archive = LocalArchive(recorded.store)
    found: list[ArchivedEvaluation] = []
    while page := await archive.evaluations("recorded", after=len(found)):
        found.extend(page)
    await archive.close()
    return found


def change(recorded: Recorded, statement: str, *values: object) -> None:
    """Change one row of the archive's store behind its back."""
    _change(recorded.folder / "runs.db", statement, *values)


async def forge(recorded: Recorded, selection: int) -> None:
    """Change the last reply to a selection so that file, name and index agree."""
    log = ExchangeLog(recorded.folder / "exchanges")
    paths = (recorded.folder / "exchanges").glob("*/*.json")
    exchanges = {path.stem: from_json(Exchange, path.read_text()) for path in paths}
    of_selection = {n: e for n, e in exchanges.items() if e.selection == selection}
    name, exchange = max(of_selection.items(), key=lambda item: item[1].attempt)
    forged = replace(exchange, reply=exchange.reply.replace("variant", "forgery"))
    assert forged != exchange
    _change(
        recorded.folder / "generator.db",
        "UPDATE exchanges SET name = ? WHERE name = ?",
        await log.record(forged),
        name,
    )


def _change(file: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        assert connection.execute(statement, values).rowcount == 1
