"""A proposal: extraction of the candidate, its provenance, the one retry, the stored exchange."""

import math
from dataclasses import replace
from typing import Any

import pytest

from generator_svc.exchange_log import ExchangeLog
from generator_svc.llm.interface import ModelReply
from kernel_foundry.domain.archive import Selection
from kernel_foundry.domain.candidate import Operator
from kernel_foundry.domain.exchange import FinishReason
from kernel_foundry.domain.request import ProposalOutcome, ProposalRequest, TokenUsage
from kernel_foundry.errors import InvalidArgumentError, LlmUnavailableError
from tests.generator.conftest import passed_elite

_USAGE = TokenUsage(
    model="scripted", input_tokens=100, output_tokens=50, cost_usd=0.01, latency_ms=1.0
)


async def test_a_good_reply_becomes_a_candidate(
    request_: ProposalRequest, samples: Any, make_generator: Any
) -> None:
    """Both blocks are taken, the rest is dropped."""
    generator, models = make_generator([samples.REPLY])
    proposal = await generator.propose(request_)
    assert proposal.candidate is not None
    assert proposal.candidate.source.device_code == samples.DEVICE_CODE
    assert proposal.candidate.source.plan == samples.PLAN
    assert proposal.usage == (_USAGE,)
    assert len(models.asked) == 1


async def test_a_seed_has_no_parents(
    request_: ProposalRequest, samples: Any, make_generator: Any
) -> None:
    """A first candidate is of generation 0 and names model and prompt."""
    generator, _ = make_generator([samples.REPLY])
    candidate = (await generator.propose(request_)).candidate
    assert (candidate.operator, candidate.parents, candidate.generation) == (Operator.SEED, (), 0)
    assert candidate.model == "scripted"
    assert len(candidate.prompt_digest) == 64


async def test_a_child_names_its_parents(
    request_: ProposalRequest, samples: Any, make_generator: Any
) -> None:
    """A combination has two parents and is one generation above the later one."""
    parent, partner = samples.passed_elite("a", 2), samples.passed_elite("b", 5)
    selection = Selection(operator=Operator.COMBINE, parent=parent, inspirations=(partner,))
    generator, _ = make_generator([samples.REPLY])
    candidate = (await generator.propose(replace(request_, selection=selection))).candidate
    assert candidate.parents == (parent.candidate.digest, partner.candidate.digest)
    assert (candidate.operator, candidate.generation) == (Operator.COMBINE, 6)


async def test_a_failed_parent_is_recorded_as_repair(
    request_: ProposalRequest, samples: Any, make_generator: Any
) -> None:
    """Whatever the selection asks for, what is done with a failed parent is a repair."""
    selection = Selection(operator=Operator.MUTATE, parent=samples.failed_elite("a"))
    generator, _ = make_generator([samples.REPLY])
    candidate = (await generator.propose(replace(request_, selection=selection))).candidate
    assert (candidate.operator, candidate.generation) == (Operator.REPAIR, 5)


async def test_a_reply_that_uses_a_banned_trick_is_asked_again(
    request_: ProposalRequest, samples: Any, make_generator: Any
) -> None:
    """A comment that names it is none; a second such reply is no candidate."""
    selection = replace(request_.selection, banned_tricks=("atomic_ref",))
    request = replace(request_, selection=selection)
    using = samples.REPLY.replace("int count) {}", "int count) { atomic_ref r(out[0]); }")
    naming = samples.REPLY.replace("int count) {}", "int count) { /* no atomic_ref */ }")
    generator, models = make_generator([using, naming, using, using])
    assert (await generator.propose(request)).candidate is not None
    assert (
        "'atomic_ref', which the run's user does not allow" in models.asked[1].messages[-1].content
    )
    refused = await generator.propose(request)
    assert refused.candidate is None
    assert "atomic_ref" in refused.failure


_KERNEL = 'extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>)) void k() {}'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("I cannot say.", "no block of device code"),
        ("", "no block of device code"),
        (f"```sycl\n{_KERNEL}\n```\n", "no launch plan"),
        (f"```sycl\n{_KERNEL}\n", "never closed"),
    ],
)
async def test_a_useless_reply_is_asked_again_with_the_reason(
    request_: ProposalRequest, samples: Any, make_generator: Any, text: str, reason: str
) -> None:
    """The second request holds the first reply and why it is no candidate."""
    generator, models = make_generator([text, samples.REPLY])
    proposal = await generator.propose(request_)
    assert proposal.candidate is not None
    assert proposal.usage == (_USAGE, _USAGE)
    *_, said, again = models.asked[1].messages
    assert (said.role, again.role) == ("assistant", "user")
    assert said.content
    assert reason in again.content


async def test_a_reply_cut_at_its_limit_says_so(
    request_: ProposalRequest, samples: Any, make_generator: Any
) -> None:
    """The model learns that length was the problem."""
    cut = ModelReply(text=samples.REPLY[:80], finish=FinishReason.LENGTH, usage=_USAGE)
    generator, models = make_generator([cut, samples.REPLY])
    assert (await generator.propose(request_)).candidate is not None
    assert "cut off at its output limit" in models.asked[1].messages[-1].content


async def test_two_useless_replies_are_a_proposal_without_candidate(
    request_: ProposalRequest, make_generator: Any
) -> None:
    """The raw reply and the reason come back; both calls are paid for."""
    generator, models = make_generator(["nothing", "still nothing"])
    proposal = await generator.propose(request_)
    assert proposal.candidate is None
    assert proposal.reply == "still nothing"
    assert "no block of device code" in proposal.failure
    assert len(proposal.usage) == len(models.asked) == 2


async def test_the_wrong_language_is_no_candidate(
    request_: ProposalRequest, samples: Any, make_generator: Any
) -> None:
    """A CUDA answer to a SYCL request is refused with that reason."""
    kernel = 'extern "C" __global__ void copy_all(const float* x, float* out, int count) {}'
    cuda = samples.REPLY.replace("```sycl", "```cuda").replace(samples.DEVICE_CODE, kernel)
    generator, _ = make_generator([cuda, cuda])
    assert "write it in sycl" in (await generator.propose(request_)).failure


async def test_a_refusal_is_not_asked_again(request_: ProposalRequest, make_generator: Any) -> None:
    """What a model declines, it declines the second time too."""
    refusal = ModelReply(text="no recipe", finish=FinishReason.REFUSED, usage=_USAGE)
    generator, models = make_generator([refusal])
    proposal = await generator.propose(request_)
    assert (proposal.candidate, proposal.failure) == (None, "no recipe")
    assert len(models.asked) == 1


async def test_a_paid_reply_is_not_lost_when_the_retry_fails(
    request_: ProposalRequest, make_generator: Any
) -> None:
    """The first call's cost is reported although the second call raised."""
    generator, _ = make_generator(["nothing", LlmUnavailableError("gone")])
    proposal = await generator.propose(request_)
    assert proposal.usage == (_USAGE,)
    assert "gone" in proposal.failure


async def test_a_first_call_that_fails_raises(
    request_: ProposalRequest, make_generator: Any
) -> None:
    """No model answering is our failure, not a candidate's."""
    generator, _ = make_generator([LlmUnavailableError("gone")])
    with pytest.raises(LlmUnavailableError, match="gone"):
        await generator.propose(request_)


async def test_every_exchange_is_stored(
    request_: ProposalRequest, samples: Any, make_generator: Any, exchanges: ExchangeLog
) -> None:
    """The candidate's prompt digest finds the reply it came from, and the useless one before."""
    generator, models = make_generator(["nothing", samples.REPLY])
    candidate = (await generator.propose(request_)).candidate
    (stored,) = await exchanges.replies(candidate.prompt_digest)
    assert stored.reply == samples.REPLY
    assert stored.messages == models.asked[1].messages
    assert (stored.usage, stored.seed, stored.recorded_unix_s) == (_USAGE, 1, 5.0)


async def test_an_unknown_prompt_has_no_replies(exchanges: ExchangeLog) -> None:
    """A folder that does not exist yet is an empty log."""
    assert await exchanges.replies("0" * 64) == ()


async def test_the_choice_of_model_is_seeded_and_spread(
    request_: ProposalRequest, samples: Any, make_generator: Any
) -> None:
    """The same seed asks the same model; over seeds every model is asked, the rest stand by."""
    generator, models = make_generator([samples.REPLY] * 42)
    both = replace(request_, models=("a", "b"))
    for seed in (*range(20), 7, 7):
        await generator.propose(replace(both, seed=seed))
    asked = [request.models for request in models.asked]
    assert set(asked) == {("a", "b"), ("b", "a")}
    assert asked[20] == asked[21] == asked[7]


async def test_no_model_named_means_the_default(
    request_: ProposalRequest, samples: Any, make_generator: Any
) -> None:
    """The first listed model is asked when the request names none."""
    generator, models = make_generator([samples.REPLY])
    await generator.propose(replace(request_, models=()))
    assert models.asked[0].models == ("scripted",)
    await generator.close()
    assert models.is_closed


async def test_a_verdict_that_is_none_teaches_nothing(
    request_: ProposalRequest, samples: Any, make_generator: Any
) -> None:
    """Reported, or shown as a parent: both decide what later proposals are drawn from."""
    generator, models = make_generator([samples.REPLY])
    elite = passed_elite("spoilt")
    outcome = ProposalOutcome(
        run=request_.run,
        selection=0,
        candidate=elite.candidate,
        evaluation=replace(elite.evaluation, fitness=math.inf),
    )
    with pytest.raises(InvalidArgumentError, match="fitness is inf"):
        await generator.report(outcome)
    selection = replace(request_.selection, parent=replace(elite, fitness=1e308))
    with pytest.raises(InvalidArgumentError, match="fitness is 1e"):
        await generator.propose(replace(request_, selection=selection))
    task = replace(request_.task, name="a name\n\n## of lines")
    with pytest.raises(InvalidArgumentError, match=r"task\.name"):
        await generator.propose(replace(request_, task=task))
    assert not models.asked
