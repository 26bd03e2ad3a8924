"""Nothing that the loop does to a verdict changes what was signed."""

import asyncio
import dataclasses
from pathlib import Path

from archive_svc.archive import LocalArchive
from evaluator_svc.signing import Signer
from kernel_foundry.domain.archive import ArchivedEvaluation, Elite
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.traffic_bound import NEVER
from kernel_foundry.evidence.record import record_of
from kernel_foundry.sdk.loop.budget import Budget
from kernel_foundry.sdk.loop.progress import Event, VerdictEvent
from kernel_foundry.sdk.verification.signature import check_integrity
from kernel_foundry.sdk.verification.statement import holds
from tests.evidence.conftest import CHECKS, DRAFT
from tests.evolution import evolution_of
from tests.sweep.test_evolution_sweeps import SPEC, SpyEvaluator, TunedGenerator


class SigningEvaluator(SpyEvaluator):
    """Signs what passes, as a real one does."""

    def __init__(self, key_file: Path) -> None:
        super().__init__()
        self._signer = Signer(key_file)

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        judged = await super().evaluate(request)
        draft = dataclasses.replace(judged, attestation=DRAFT, checks=CHECKS)
        return self._signer.attested(request.task, request.source, draft)


def test_every_verdict_of_a_run_is_as_it_was_signed(tmp_path: Path) -> None:
    """Told seeds, mutations, winners of sweeps, promotions; as told and as elites."""
    events: list[Event] = []

    async def evolve() -> tuple[tuple[ArchivedEvaluation, ...], tuple[Elite, ...]]:
        archive = LocalArchive(f"sqlite:///{tmp_path / 'runs.db'}")
        evolution = evolution_of(
            await archive.create_run(SPEC),
            archive,
            Budget(evaluations=40, stop_at=NEVER),
            evaluator=SigningEvaluator(tmp_path / "evaluator.key"),
            generator=TunedGenerator(),
            listener=events.append,
        )
        await evolution.run()
        archived = await archive.evaluations(SPEC.name, limit=1000)
        elites = await archive.elites(SPEC.name)
        await archive.close()
        return archived, elites

    archived, elites = asyncio.run(evolve())
    assert any(t.evaluation.swept_count for t in archived)
    assert any(isinstance(event, VerdictEvent) and event.is_promotion for event in events)
    assert elites
    for entry in (*archived, *elites):
        record = record_of(SPEC.task, entry.candidate.source, entry.evaluation)
        assert holds(check_integrity(record)), check_integrity(record)
