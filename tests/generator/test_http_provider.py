"""Providers over real HTTP: LiteLLM against an OpenAI-compatible server on this machine.

What a call counts is compared with what the server received.
"""

import random
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from generator_svc.assembly import assemble
from generator_svc.generator import LocalGenerator
from generator_svc.llm.interface import ModelRequest
from generator_svc.llm.litellm_models import LiteLlmModels
from generator_svc.llm.retrying import ModelRetryPolicy
from kernel_foundry.domain.exchange import ChatMessage, FinishReason
from kernel_foundry.domain.request import BudgetCaps, ProposalRequest
from kernel_foundry.errors import (
    KernelFoundryError,
    LlmConfigurationError,
    LlmQuotaError,
    LlmUnavailableError,
)
from tests.llm_server import (
    FAULTS,
    Answer,
    LlmServer,
    cut_body,
    dropped,
    empty,
    error,
    filtered,
    garbage,
    good,
    hang,
    quota,
    rate_limited,
    refusal,
    truncated,
    wrong_json,
)

_MODEL = "openai/gpt-5"
_OTHER = "openai/gpt-5-mini"
_DOWN = error(500, "server_error")


class Counter:
    """What a call announces of its requests."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, bool]] = []
        self.lost: list[str] = []

    def ask(self, *names: str) -> ModelRequest:
        """Return a request that is counted here."""
        return ModelRequest(
            models=names,
            messages=(ChatMessage(role="user", content="hello"),),
            max_output_tokens=500,
            assignment='{"secret":"of recipes"}',
            on_request=lambda model, is_retry: self.requests.append((model, is_retry)),
            on_lost=self.lost.append,
        )


@pytest.fixture
def counter() -> Counter:
    return Counter()


def _models(retry_count: int, timeout_seconds: float = 30.0) -> LiteLlmModels:
    policy = ModelRetryPolicy(
        retry_count=retry_count, first_back_off_seconds=0.02, longest_retry_after_seconds=1.0
    )
    return LiteLlmModels(timeout_seconds=timeout_seconds, retrying=policy, rng=random.Random(1))


def _timeout_seconds(request: pytest.FixtureRequest) -> float:
    """Return a short limit for the answer that never comes, and one that no other reaches."""
    callspec = getattr(request.node, "callspec", None)
    answer = callspec.params.get("answer") if callspec else None
    return 2.0 if isinstance(answer, Answer) and answer.hangs else 30.0


@pytest.fixture
async def models(request: pytest.FixtureRequest) -> AsyncIterator[LiteLlmModels]:
    """Return models that ask again once."""
    models = _models(retry_count=1, timeout_seconds=_timeout_seconds(request))
    yield models
    await models.close()


@pytest.fixture
async def impatient(request: pytest.FixtureRequest) -> AsyncIterator[LiteLlmModels]:
    """Return models that never ask twice."""
    models = _models(retry_count=0, timeout_seconds=_timeout_seconds(request))
    yield models
    await models.close()


@pytest.fixture
async def generator(models: LiteLlmModels, tmp_path: Path) -> AsyncIterator[LocalGenerator]:
    generator = assemble(
        store_url=f"sqlite:///{tmp_path / 'generator.db'}",
        exchanges=tmp_path / "exchanges",
        models=models,
    ).generator
    yield generator
    await generator.close()


async def test_a_reply_comes_with_text_usage_and_cost(
    llm_server: LlmServer, models: LiteLlmModels, counter: Counter
) -> None:
    """Tokens are the provider's, the cost is LiteLLM's table, the latency is ours."""
    llm_server.play(good("hi there"))
    reply = await models.complete(counter.ask(_MODEL))
    assert (reply.text, reply.finish) == ("hi there", FinishReason.STOP)
    assert (reply.usage.model, reply.usage.input_tokens, reply.usage.output_tokens) == (
        _MODEL,
        1000,
        200,
    )
    assert reply.usage.cost_usd == pytest.approx(1000 * 1.25e-6 + 200 * 1e-5)
    assert reply.usage.latency_ms > 0
    assert counter.requests == [(_MODEL, False)]


@pytest.mark.parametrize("variable", ["OPENAI_BASE_URL", "OPENAI_API_BASE"])
async def test_a_server_of_ones_own_serves_any_name(
    llm_server: LlmServer,
    models: LiteLlmModels,
    counter: Counter,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
) -> None:
    """Whatever stands behind "openai/" goes there, with a key of any text."""
    monkeypatch.delenv("OPENAI_BASE_URL")
    monkeypatch.setenv(variable, llm_server.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    llm_server.play(good("hi"))
    name = "openai/some/model-of:my.own"
    await models.check((name,))
    reply = await models.complete(counter.ask(name))
    assert (reply.text, reply.usage.model, reply.usage.cost_usd) == ("hi", name, 0.0)
    (sent,) = llm_server.requests
    assert (sent.model, sent.key) == ("some/model-of:my.own", "none")


async def test_what_prompts_begin_with_is_marked_where_marks_decide_what_is_cached(
    llm_server: LlmServer,
    models: LiteLlmModels,
    counter: Counter,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Claude caches up to a mark; others take none (see the test after this one)."""
    monkeypatch.setenv("OPENROUTER_API_KEY", "none")
    monkeypatch.setenv("OPENROUTER_API_BASE", llm_server.base_url)
    request = counter.ask("openrouter/anthropic/claude-sonnet-4.5")
    instructions = ChatMessage(role="system", content="of the whole run")
    await models.complete(replace(request, messages=(instructions, *request.messages)))
    (sent,) = llm_server.requests
    system, user = sent.body["messages"]
    assert system["content"] == [
        {"type": "text", "text": "of the whole run", "cache_control": {"type": "ephemeral"}}
    ]
    assert "cache_control" not in str(user)


async def test_the_assignment_never_leaves_the_process(
    llm_server: LlmServer, models: LiteLlmModels, counter: Counter
) -> None:
    """Only messages and limits are sent to a provider."""
    llm_server.play(good("hi"))
    await models.complete(counter.ask(_MODEL))
    (sent,) = llm_server.requests
    assert sent.body["messages"] == [{"role": "user", "content": "hello"}]
    assert "of recipes" not in str(sent)
    assert 500 in sent.body.values()


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (error(401, "invalid_api_key"), LlmConfigurationError),
        (quota(), LlmQuotaError),
        (error(402, "payment_required"), LlmQuotaError),
        (error(403, "permission_denied"), LlmConfigurationError),
        (error(404, "model_not_found"), LlmConfigurationError),
        (error(400, "invalid_request_error"), LlmConfigurationError),
        (error(400, "context_length_exceeded"), LlmConfigurationError),
        (rate_limited(30.0), LlmUnavailableError),
    ],
    ids=lambda value: "" if isinstance(value, type) else str(value.document["error"]["code"]),
)
async def test_what_asking_again_does_not_cure_is_asked_once(
    llm_server: LlmServer,
    models: LiteLlmModels,
    counter: Counter,
    answer: Answer,
    expected: type[KernelFoundryError],
) -> None:
    """Status, class and code decide, never a message; so does a Retry-After that is too long."""
    llm_server.play(answer)
    with pytest.raises(expected) as caught:
        await models.complete(counter.ask(_MODEL))
    assert caught.value.metadata["model"] == _MODEL
    assert len(counter.requests) == len(llm_server.requests) == 1
    assert counter.lost == []


_TROUBLE: dict[str, tuple[Answer, bool]] = {
    "rate limit": (rate_limited(0.01), False),
    "request time-out": (error(408, "timeout"), False),
    "server error": (_DOWN, False),
    "bad gateway": (error(502, "bad_gateway"), False),
    "overloaded": (error(503, "overloaded"), False),
    "html with 503": (Answer(status=503, body=b"<html>", content_type="text/html"), False),
    "no answer": (hang(), True),
    "cut body": (cut_body(), True),
    "dropped": (dropped(), True),
    "html": (garbage(), True),
    "half JSON": (garbage(b"{not json", "application/json"), True),
    "empty body": (garbage(b"", "application/json"), True),
    "null": (garbage(b"null", "application/json"), True),
    "empty object": (wrong_json({}), True),
    "no choice": (wrong_json({"choices": []}), True),
    "choices is an object": (wrong_json({"choices": {}}), True),
    "choice without message": (wrong_json({"choices": [{"index": 0}]}), True),
    "text is a number": (wrong_json({"choices": [{"message": {"content": 42}}]}), True),
    "error with status 200": (wrong_json({"error": {"message": "later"}}), True),
}
"""Answers after which asking again helps, and whether they may have been billed."""


@pytest.mark.parametrize(("answer", "may_be_billed"), _TROUBLE.values(), ids=_TROUBLE)
async def test_passing_trouble_is_asked_again(
    llm_server: LlmServer,
    models: LiteLlmModels,
    counter: Counter,
    answer: Answer,
    may_be_billed: bool,
) -> None:
    """One retry costs a request, not the proposal; each request is counted when it is sent."""
    llm_server.play(answer, good("hi"))
    assert (await models.complete(counter.ask(_MODEL))).text == "hi"
    assert counter.requests == [(_MODEL, False), (_MODEL, True)]
    assert len(llm_server.requests) == 2
    assert counter.lost == [_MODEL] * may_be_billed


@pytest.mark.parametrize(("answer", "may_be_billed"), _TROUBLE.values(), ids=_TROUBLE)
async def test_trouble_that_stays_is_unavailability(
    llm_server: LlmServer,
    impatient: LiteLlmModels,
    counter: Counter,
    answer: Answer,
    may_be_billed: bool,
) -> None:
    """Whatever kind of trouble it was."""
    llm_server.play(answer)
    with pytest.raises(LlmUnavailableError) as caught:
        await impatient.complete(counter.ask(_MODEL))
    assert caught.value.metadata["model"] == _MODEL
    assert counter.requests == [(_MODEL, False)]
    assert counter.lost == [_MODEL] * may_be_billed


async def test_nobody_listens(
    models: LiteLlmModels, counter: Counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that never left is counted, but nobody bills it."""
    with LlmServer() as gone:
        address = gone.base_url
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    with pytest.raises(LlmUnavailableError):
        await models.complete(counter.ask(_MODEL))
    assert (len(counter.requests), counter.lost) == (2, [])


async def test_an_answer_that_trickles_is_late(
    llm_server: LlmServer, models: LiteLlmModels, counter: Counter
) -> None:
    """The limit is for the whole answer, not for each piece of it."""
    llm_server.play(good("hi"), replace(good("x" * 50), trickle_seconds=0.05))
    await models.complete(counter.ask(_MODEL))  # the first one loads more than a limit allows
    hurried = _models(retry_count=0, timeout_seconds=1.0)
    with pytest.raises(LlmUnavailableError, match="did not answer in"):
        await hurried.complete(counter.ask(_MODEL))
    await hurried.close()
    assert counter.lost == [_MODEL]


async def test_a_model_that_stays_down_is_replaced(
    llm_server: LlmServer, models: LiteLlmModels, counter: Counter
) -> None:
    """The next model answers, the usage names it, and each model has its requests counted."""
    llm_server.play(_DOWN, _DOWN, good("hi"))
    reply = await models.complete(counter.ask(_MODEL, _OTHER))
    assert reply.usage.model == _OTHER
    assert [r.model for r in llm_server.requests] == ["gpt-5", "gpt-5", "gpt-5-mini"]
    assert counter.requests == [(_MODEL, False), (_MODEL, True), (_OTHER, True)]


async def test_a_refused_model_is_replaced_at_once(
    llm_server: LlmServer, models: LiteLlmModels, counter: Counter
) -> None:
    """A used-up quota or a bad key of one provider is no reason to stop asking others."""
    llm_server.play(quota(), error(401, "invalid_api_key"), good("hi"))
    reply = await models.complete(counter.ask(_MODEL, _OTHER, "openai/third"))
    assert (reply.text, len(llm_server.requests)) == ("hi", 3)


async def test_the_failure_that_passes_is_told(
    llm_server: LlmServer, impatient: LiteLlmModels, counter: Counter
) -> None:
    """A run may go on later when one of its models was only busy."""
    llm_server.play(quota(), rate_limited())
    with pytest.raises(LlmUnavailableError):
        await impatient.complete(counter.ask(_MODEL, _OTHER))


async def test_a_model_that_failed_is_asked_again(
    llm_server: LlmServer, impatient: LiteLlmModels, counter: Counter
) -> None:
    """A failure does not shut a model out for the proposals after it."""
    llm_server.play(rate_limited(), good("hi"))
    with pytest.raises(LlmUnavailableError):
        await impatient.complete(counter.ask(_MODEL))
    assert (await impatient.complete(counter.ask(_MODEL))).text == "hi"


@pytest.mark.parametrize(
    ("answer", "finish"),
    [
        (truncated(), FinishReason.LENGTH),
        (refusal(), FinishReason.REFUSED),
        (filtered(), FinishReason.REFUSED),
        (error(400, "content_policy_violation"), FinishReason.REFUSED),
        (empty(), FinishReason.STOP),
        (empty(is_null=True), FinishReason.STOP),
        (wrong_json({"choices": [{"message": {}}]}), FinishReason.STOP),
        (good("word " * 1_000_000), FinishReason.LENGTH),
    ],
    ids=["cut", "refusal", "filtered", "policy", "empty", "null", "no-content", "endless"],
)
async def test_why_a_reply_ended_is_known(
    llm_server: LlmServer,
    models: LiteLlmModels,
    counter: Counter,
    answer: Answer,
    finish: FinishReason,
) -> None:
    """Cut, declined and empty replies are data, and are not asked again."""
    llm_server.play(answer)
    assert (await models.complete(counter.ask(_MODEL))).finish is finish
    assert len(llm_server.requests) == 1


@pytest.mark.parametrize(
    "message",
    [{"content": "half \ud800 a character"}, {"content": None, "refusal": ["no", "\ud800"]}],
    ids=["half-character", "list"],
)
async def test_a_reply_is_text_that_can_be_kept(
    llm_server: LlmServer,
    generator: LocalGenerator,
    request_: ProposalRequest,
    message: dict[str, Any],
) -> None:
    """What JSON can hold and no file, digest or wire can, is no reason to end a run."""
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    llm_server.play(wrong_json({"choices": [{"message": message}], "usage": usage}))
    proposal = await generator.propose(replace(request_, models=(_MODEL,)))
    assert proposal.candidate is None
    assert proposal.failure.encode()
    (exchange, *_) = await generator.exchanges(request_.run)
    assert exchange.reply.encode()


@pytest.mark.parametrize(
    "usage",
    [
        {},
        {"usage": {"prompt_tokens": -5000, "completion_tokens": 1, "total_tokens": 1}},
        {"usage": {"prompt_tokens": 10**30, "completion_tokens": 1, "total_tokens": 1}},
    ],
    ids=["none", "negative", "more-than-there-is"],
)
async def test_what_a_server_does_not_count_is_estimated(
    llm_server: LlmServer,
    generator: LocalGenerator,
    request_: ProposalRequest,
    usage: dict[str, Any],
) -> None:
    """Else a cap would never be reached."""
    llm_server.play(wrong_json({"choices": [{"message": {"content": "x" * 300}}], **usage}))
    proposal = await generator.propose(replace(request_, models=(_MODEL,)))
    (first, _) = proposal.usage
    prompt = (await generator.exchanges(request_.run))[0].messages
    assert first.input_tokens > sum(len(m.content) for m in prompt) / 4
    assert first.output_tokens == 100
    assert first.cost_usd == pytest.approx(first.input_tokens * 1.25e-6 + 100 * 1e-5)
    (spend,) = (await generator.account(request_.run)).spend
    assert spend.usd == pytest.approx(sum(u.cost_usd for u in proposal.usage))


async def test_a_model_under_another_name_costs_what_was_asked_for(
    llm_server: LlmServer, generator: LocalGenerator, request_: ProposalRequest, samples: Any
) -> None:
    """A gateway may call a model as its own table does, which LiteLLM has no price for."""
    document = dict(good(samples.REPLY).document or {})
    llm_server.play(wrong_json({**document, "model": "gateway-7"}))
    proposal = await generator.propose(replace(request_, models=(_MODEL,)))
    assert proposal.usage[0].cost_usd == pytest.approx(1000 * 1.25e-6 + 200 * 1e-5)


async def test_every_request_waits_for_its_turn(
    llm_server: LlmServer, models: LiteLlmModels, counter: Counter
) -> None:
    """Retries, too; the wait comes before the request is counted."""
    waits: list[int] = []

    async def wait() -> None:
        waits.append(len(counter.requests))

    llm_server.play(_DOWN, good("hi"))
    await models.complete(replace(counter.ask(_MODEL), before_request=wait))
    assert waits == [0, 1]


async def test_models_can_be_closed_and_others_opened(
    llm_server: LlmServer, counter: Counter
) -> None:
    """Connections end with their models; the next ones make their own."""
    llm_server.play(good("hi"))
    for _ in range(2):
        models = _models(retry_count=0)
        assert (await models.complete(counter.ask(_MODEL))).text == "hi"
        await models.close()
    assert len(llm_server.requests) == 2


def test_every_fault_of_the_server_is_tried_here() -> None:
    """A new fault is to be met above, as trouble or as data."""
    answers = [answer for answer, _ in _TROUBLE.values()]
    data = {"slow", "truncated", "null_content", "empty", "refusal"}
    kinds = {
        name
        for name, make in FAULTS.items()
        if any((a.status, a.hangs, a.is_dropped, a.sent_share) == _shape(make()) for a in answers)
    }
    assert kinds | data == set(FAULTS)


def _shape(answer: Answer) -> tuple[int, bool, bool, float]:
    return answer.status, answer.hangs, answer.is_dropped, answer.sent_share


async def test_a_missing_key_is_named(
    models: LiteLlmModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message says which variable to set, before any call."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(LlmConfigurationError, match="ANTHROPIC_API_KEY") as caught:
        await models.check(("anthropic/claude-sonnet-4-5",))
    assert caught.value.metadata["variable"] == "ANTHROPIC_API_KEY"


async def test_an_unknown_provider_is_named(models: LiteLlmModels) -> None:
    """A name without a provider is a configuration error that shows what a name looks like."""
    with pytest.raises(LlmConfigurationError, match="provider/model"):
        await models.check(("no-such-model",))


async def test_a_proposal_by_http(
    llm_server: LlmServer, generator: LocalGenerator, request_: ProposalRequest, samples: Any
) -> None:
    """A garbage reply, asked again, becomes a candidate; both calls are paid."""
    llm_server.play(good("nonsense"), good(samples.REPLY))
    proposal = await generator.propose(replace(request_, models=(_MODEL,)))
    assert proposal.candidate is not None
    assert proposal.candidate.model == _MODEL
    assert sum(u.cost_usd for u in proposal.usage) == pytest.approx(2 * 0.00325)
    assert len(llm_server.requests) == 2


async def test_caps_hold_before_anything_is_sent(
    llm_server: LlmServer, generator: LocalGenerator, request_: ProposalRequest
) -> None:
    """The price comes from the cost table, so a cap below one call's worst case sends nothing."""
    capped = replace(request_, models=(_MODEL,), caps=BudgetCaps(cost_usd=0.05))
    with pytest.raises(LlmQuotaError):
        await generator.propose(capped)
    assert llm_server.requests == []


async def test_a_small_budget_buys_a_shorter_reply(
    llm_server: LlmServer, generator: LocalGenerator, request_: ProposalRequest, samples: Any
) -> None:
    """The output limit shrinks to what the cap allows, before the budget refuses."""
    llm_server.play(good(samples.REPLY))
    for cap_usd in (5.0, 0.2):
        capped = replace(request_, models=(_MODEL,), caps=BudgetCaps(cost_usd=cap_usd))
        assert (await generator.propose(capped)).candidate is not None
    roomy, tight = [r.body["max_completion_tokens"] for r in llm_server.requests]
    assert (roomy, tight) == (32_768, 16_384)


async def test_a_model_without_a_price_needs_a_token_cap(
    llm_server: LlmServer, generator: LocalGenerator, request_: ProposalRequest, samples: Any
) -> None:
    """A model of one's own runs under a token cap and is refused under a USD cap."""
    llm_server.play(good(samples.REPLY))
    own = replace(request_, models=("openai/my-own-model",))
    with pytest.raises(LlmConfigurationError, match="price"):
        await generator.propose(replace(own, caps=BudgetCaps(cost_usd=5.0)))
    capped = replace(own, caps=BudgetCaps(tokens=100_000))
    assert (await generator.propose(capped)).candidate is not None
