"""A run's name is looked at before the admission, and free again where no model could be asked."""

import dataclasses

import pytest

from archive_svc.archive import LocalArchive
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import EvaluationLimits, Proposal, ProposalRequest
from kernel_foundry.errors import AlreadyExistsError, LlmConfigurationError, RunNotFoundError
from kernel_foundry.sdk.loop.budget import Budget
from kernel_foundry.sdk.loop.progress import Event
from kernel_foundry.sdk.optimization import optimize
from kernel_foundry.sdk.services import Services
from kernel_foundry.testing.evaluator import FakeEvaluator
from kernel_foundry.testing.generator import FakeGenerator
from tests.sdk.replay.recorded import SPEC


class PricelessGenerator(FakeGenerator):
    """Knows no price, as a provider's cost table may."""

    async def propose(self, request: ProposalRequest) -> Proposal:
        raise LlmConfigurationError("the price of model 'fake' is not known", model="fake")


async def _run(archive: LocalArchive, events: list[Event]) -> None:
    await optimize(
        Services(evaluator=FakeEvaluator(), archive=archive, generator=PricelessGenerator()),
        SPEC.task,
        language=Language.SYCL,
        device=SPEC.device,
        models=("fake",),
        budget=Budget(evaluations=2),
        limits=EvaluationLimits(),
        listener=events.append,
        run="a",
    )


async def test_a_run_that_could_ask_no_model_is_not_kept(archive: LocalArchive) -> None:
    with pytest.raises(LlmConfigurationError, match="price"):
        await _run(archive, [])
    with pytest.raises(RunNotFoundError):
        await archive.get_run("a")


async def test_a_name_that_is_taken_is_said_before_the_admission(archive: LocalArchive) -> None:
    await archive.create_run(dataclasses.replace(SPEC, name="a", seed=3))
    events: list[Event] = []
    with pytest.raises(AlreadyExistsError, match="seed 3 there, 0 asked for"):
        await _run(archive, events)
    assert events == []
