"""What every generator promises: the fake, the real one with recipes, one by a gateway.

The first two behind a UNIX socket too.
"""

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from generator_svc.llm.litellm_models import LiteLlmModels
from generator_svc.service import generator_service
from kernel_foundry.domain.archive import Selection
from kernel_foundry.domain.candidate import Operator
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import BudgetCaps, ProposalRequest
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import LlmConfigurationError, LlmQuotaError
from kernel_foundry.ports import Generator
from kernel_foundry.rpc.generator import RemoteGenerator
from kernel_foundry.testing.generator import FakeGenerator
from tests.contract.conftest import each_way, reach
from tests.generators import generator_in
from tests.pointwise import pointwise_admission
from tests.rpc.gateway import by_gateway


@pytest.fixture(params=[*each_way("fake", "local"), "gateway"])
async def generator(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Generator]:
    implementation: Generator = FakeGenerator()
    async with AsyncExitStack() as stack:
        if request.param.startswith("local"):
            implementation = generator_in(tmp_path, LiteLlmModels())
        elif request.param == "gateway":
            implementation = await stack.enter_async_context(
                by_gateway(implementation, generator_service, RemoteGenerator)
            )
        yield await stack.enter_async_context(
            reach(request.param, tmp_path, implementation, generator_service, RemoteGenerator)
        )


@pytest.fixture
def proposal_request(task: Task) -> ProposalRequest:
    return ProposalRequest(
        run="first",
        task=task,
        admission=pointwise_admission(task),
        selection=Selection(operator=Operator.SEED),
        models=(),
        seed=1,
    )


async def test_models_are_checked_before_anything_is_paid(generator: Generator) -> None:
    """What can be asked passes, also for one expert alone; what nobody knows is named."""
    (default, *_) = await generator.list_models()
    await generator.check_models(())
    await generator.check_models((default,))
    with pytest.raises(LlmConfigurationError, match="no-such-provider/x"):
        await generator.check_models((default, "no-such-provider/x"))


async def test_models_that_can_do_the_task_have_no_limit(
    generator: Generator, proposal_request: ProposalRequest
) -> None:
    """The default model can do a pointwise task, whoever it is."""
    models = (await generator.list_models())[:1]
    assert await generator.model_limits(models, proposal_request.admission) == ()


async def test_proposal_has_a_candidate(
    generator: Generator, proposal_request: ProposalRequest
) -> None:
    """The default model answers with a whole candidate and says what it cost."""
    (default, *_) = await generator.list_models()
    proposal = await generator.propose(dataclasses.replace(proposal_request, models=(default,)))
    assert proposal.failure == ""
    assert proposal.candidate is not None
    assert proposal.candidate.source.language is Language.SYCL
    assert proposal.candidate.operator is Operator.SEED
    assert proposal.candidate.parents == ()
    assert [default] == [usage.model for usage in proposal.usage]


async def test_empty_model_list_takes_the_default(
    generator: Generator, proposal_request: ProposalRequest
) -> None:
    """A request that names no model is served by the first one listed."""
    (default, *_) = await generator.list_models()
    proposal = await generator.propose(proposal_request)
    assert [default] == [usage.model for usage in proposal.usage]


async def test_unknown_model_is_a_configuration_error(
    generator: Generator, proposal_request: ProposalRequest
) -> None:
    request = dataclasses.replace(proposal_request, models=("no-such-model",))
    with pytest.raises(LlmConfigurationError, match="no-such-model"):
        await generator.propose(request)


@pytest.mark.parametrize(
    "spent",
    [
        {"caps": BudgetCaps(cost_usd=1.0), "spent_usd": 1.0},
        {"caps": BudgetCaps(tokens=10), "spent_tokens": 10},
    ],
    ids=["usd", "tokens"],
)
async def test_used_up_budget_is_refused(
    generator: Generator, proposal_request: ProposalRequest, spent: dict[str, object]
) -> None:
    """No model is asked once the run's budget is gone."""
    with pytest.raises(LlmQuotaError):
        await generator.propose(dataclasses.replace(proposal_request, **spent))


async def test_proposals_run_at_once(
    generator: Generator, proposal_request: ProposalRequest
) -> None:
    """Sixteen proposals of sixteen seeds are all answered."""
    requests = [dataclasses.replace(proposal_request, seed=seed) for seed in range(16)]
    proposals = await asyncio.gather(*map(generator.propose, requests))
    assert all(proposal.candidate for proposal in proposals)
