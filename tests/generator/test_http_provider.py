"""Providers over real HTTP: LiteLLM against an OpenAI-compatible server on this machine.

Real sockets and real JSON: what LiteLLM meets here is what it meets at a provider.
"""

import json
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from generator_svc.exchange_log import ExchangeLog
from generator_svc.generator import Generator
from generator_svc.llm.interface import ModelRequest
from generator_svc.llm.litellm_models import LiteLlmModels
from generator_svc.store.store import GeneratorStore
from kernel_foundry.domain.exchange import ChatMessage, FinishReason
from kernel_foundry.domain.request import BudgetCaps, ProposalRequest
from kernel_foundry.errors import (
    KernelFoundryError,
    LlmConfigurationError,
    LlmQuotaError,
    LlmUnavailableError,
)

_MODEL = "openai/gpt-5"
_OTHER = "openai/gpt-5-mini"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One HTTP answer."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    hangs: bool = False
    """True: nothing is answered until the server stops."""


def completion(text: str | None, finish_reason: str = "stop", refusal: str | None = None) -> Answer:
    """Return a chat completion that used 1000 + 200 tokens."""
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-5",
        "choices": [
            {
                "index": 0,
                "finish_reason": finish_reason,
                "message": {"role": "assistant", "content": text, "refusal": refusal},
            }
        ],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 200, "total_tokens": 1200},
    }
    return Answer(body=json.dumps(body).encode())


def failure(status: int, code: str) -> Answer:
    """Return an error as OpenAI words it."""
    kind = "invalid_request_error" if status == 400 else code
    body = {"error": {"message": f"prepared {code}", "type": kind, "code": code}}
    return Answer(status=status, body=json.dumps(body).encode())


@dataclass
class OpenAiServer:
    """Plays prepared answers; the last one repeats. Use as a context manager."""

    script: list[Answer] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    """Bodies as received."""

    def __enter__(self) -> "OpenAiServer":
        """Listen on a free port of the loopback."""
        self._stopping = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Let hanging answers go and stop listening."""
        self._stopping.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def base_url(self) -> str:
        """What `OPENAI_API_BASE` is set to."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def _next(self, request: dict[str, Any]) -> Answer:
        self.requests.append(request)
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]

    def _handler(owner) -> type[BaseHTTPRequestHandler]:  # noqa: N805  two selfs below
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                answer = owner._next(json.loads(self.rfile.read(length)))
                if answer.hangs:
                    owner._stopping.wait()
                    return
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.content_type)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)

            def log_message(self, *_: object) -> None:
                """Keep the test output clean."""

        return Handler


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAiServer]:
    """Return a server that LiteLLM takes for OpenAI."""
    with OpenAiServer() as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_API_BASE", server.base_url)
        yield server


@pytest.fixture
async def models() -> AsyncIterator[LiteLlmModels]:
    """Return models that give up soon."""
    models = LiteLlmModels(timeout_seconds=1.0, retry_count=1, first_back_off_seconds=0)
    yield models
    await models.close()


@pytest.fixture
async def impatient() -> AsyncIterator[LiteLlmModels]:
    """Return models that never ask twice."""
    models = LiteLlmModels(timeout_seconds=0.5, retry_count=0, first_back_off_seconds=0)
    yield models
    await models.close()


@pytest.fixture
def generator(models: LiteLlmModels, tmp_path: Path) -> Generator:
    """Return a generator on those models."""
    return Generator(
        models=models,
        store=GeneratorStore(f"sqlite:///{tmp_path / 'generator.db'}"),
        exchanges=ExchangeLog(tmp_path / "exchanges"),
    )


def _ask(*names: str) -> ModelRequest:
    return ModelRequest(
        models=names,
        messages=(ChatMessage(role="user", content="hello"),),
        max_output_tokens=500,
        assignment='{"secret":"of recipes"}',
    )


async def test_a_reply_comes_with_text_usage_and_cost(
    server: OpenAiServer, models: LiteLlmModels
) -> None:
    """Tokens are the provider's, the cost is LiteLLM's table, the latency is ours."""
    server.script = [completion("hi there")]
    reply = await models.complete(_ask(_MODEL))
    assert (reply.text, reply.finish) == ("hi there", FinishReason.STOP)
    assert (reply.usage.model, reply.usage.input_tokens, reply.usage.output_tokens) == (
        _MODEL,
        1000,
        200,
    )
    assert reply.usage.cost_usd == pytest.approx(1000 * 1.25e-6 + 200 * 1e-5)
    assert reply.usage.latency_ms > 0


async def test_the_assignment_never_leaves_the_process(
    server: OpenAiServer, models: LiteLlmModels
) -> None:
    """Only messages and limits are sent to a provider."""
    server.script = [completion("hi")]
    await models.complete(_ask(_MODEL))
    (sent,) = server.requests
    assert sent["messages"] == [{"role": "user", "content": "hello"}]
    assert "of recipes" not in json.dumps(sent)
    assert 500 in sent.values()


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (failure(429, "insufficient_quota"), LlmQuotaError),
        (failure(500, "server_error"), LlmUnavailableError),
        (failure(503, "overloaded"), LlmUnavailableError),
        (failure(401, "invalid_api_key"), LlmConfigurationError),
        (failure(402, "payment_required"), LlmQuotaError),
        (failure(403, "permission_denied"), LlmConfigurationError),
        (failure(404, "model_not_found"), LlmConfigurationError),
        (failure(400, "invalid_request_error"), LlmConfigurationError),
        (failure(400, "context_length_exceeded"), LlmConfigurationError),
        (Answer(hangs=True), LlmUnavailableError),
        (Answer(body=b"<html>gateway</html>", content_type="text/html"), LlmUnavailableError),
        (Answer(body=b"{not json"), LlmUnavailableError),
        (Answer(body=b"{}"), LlmUnavailableError),
        (Answer(body=b'{"choices": []}'), LlmUnavailableError),
    ],
    ids=[
        "quota",
        "server-error",
        "overloaded",
        "bad-key",
        "unpaid",
        "forbidden",
        "unknown-model",
        "bad-request",
        "too-long",
        "no-answer",
        "html",
        "half-json",
        "empty-object",
        "no-choice",
    ],
)
async def test_each_failure_has_its_error(
    server: OpenAiServer,
    impatient: LiteLlmModels,
    answer: Answer,
    expected: type[KernelFoundryError],
) -> None:
    """Status and class decide, never a message."""
    server.script = [answer]
    with pytest.raises(expected) as caught:
        await impatient.complete(_ask(_MODEL))
    assert caught.value.metadata["model"] == _MODEL


async def test_a_passing_failure_is_retried(server: OpenAiServer, models: LiteLlmModels) -> None:
    """One 500 costs a retry, not the proposal."""
    server.script = [failure(500, "server_error"), completion("hi")]
    assert (await models.complete(_ask(_MODEL))).text == "hi"
    assert len(server.requests) == 2


async def test_a_model_that_stays_down_is_replaced(
    server: OpenAiServer, models: LiteLlmModels
) -> None:
    """The next model answers, and the usage names it."""
    down = failure(500, "server_error")
    server.script = [down, down, completion("hi")]
    reply = await models.complete(_ask(_MODEL, _OTHER))
    assert reply.usage.model == _OTHER
    assert [request["model"] for request in server.requests] == ["gpt-5", "gpt-5", "gpt-5-mini"]


async def test_a_model_that_failed_is_asked_again(
    server: OpenAiServer, impatient: LiteLlmModels
) -> None:
    """A failure does not shut a model out for the proposals after it."""
    server.script = [failure(429, "rate_limit_exceeded"), completion("hi")]
    with pytest.raises(LlmQuotaError):
        await impatient.complete(_ask(_MODEL))
    assert (await impatient.complete(_ask(_MODEL))).text == "hi"


@pytest.mark.parametrize(
    ("answer", "finish"),
    [
        (completion("half a", finish_reason="length"), FinishReason.LENGTH),
        (completion(None, refusal="I will not"), FinishReason.REFUSED),
        (completion(None, finish_reason="content_filter"), FinishReason.REFUSED),
        (failure(400, "content_policy_violation"), FinishReason.REFUSED),
        (completion(None), FinishReason.STOP),
    ],
    ids=["cut", "refusal", "filtered", "policy", "empty"],
)
async def test_why_a_reply_ended_is_known(
    server: OpenAiServer, models: LiteLlmModels, answer: Answer, finish: FinishReason
) -> None:
    """Cut, declined and empty replies are data."""
    server.script = [answer]
    assert (await models.complete(_ask(_MODEL))).finish is finish


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
    server: OpenAiServer, generator: Generator, request_: ProposalRequest, samples: Any
) -> None:
    """A garbage reply, asked again, becomes a candidate; both calls are paid."""
    server.script = [completion("nonsense"), completion(samples.REPLY)]
    proposal = await generator.propose(replace(request_, models=(_MODEL,)))
    assert proposal.candidate is not None
    assert proposal.candidate.model == _MODEL
    assert sum(u.cost_usd for u in proposal.usage) == pytest.approx(2 * 0.00325)
    assert "no whole candidate" in server.requests[1]["messages"][-1]["content"]


async def test_caps_hold_before_anything_is_sent(
    server: OpenAiServer, generator: Generator, request_: ProposalRequest
) -> None:
    """The price comes from the cost table, so a cap below one call's worst case sends nothing."""
    server.script = [completion("unused")]
    capped = replace(request_, models=(_MODEL,), caps=BudgetCaps(cost_usd=0.05))
    with pytest.raises(LlmQuotaError):
        await generator.propose(capped)
    assert server.requests == []


async def test_a_small_budget_buys_a_shorter_reply(
    server: OpenAiServer, generator: Generator, request_: ProposalRequest, samples: Any
) -> None:
    """The output limit shrinks to what the cap allows, before the budget refuses."""
    server.script = [completion(samples.REPLY)]
    for cap_usd in (5.0, 0.2):
        capped = replace(request_, models=(_MODEL,), caps=BudgetCaps(cost_usd=cap_usd))
        assert (await generator.propose(capped)).candidate is not None
    roomy, tight = [request["max_completion_tokens"] for request in server.requests]
    assert (roomy, tight) == (32_768, 16_384)


async def test_a_model_without_a_price_needs_a_token_cap(
    server: OpenAiServer, generator: Generator, request_: ProposalRequest, samples: Any
) -> None:
    """A model of one's own runs under a token cap and is refused under a USD cap."""
    server.script = [completion(samples.REPLY)]
    own = replace(request_, models=("openai/my-own-model",))
    with pytest.raises(LlmConfigurationError, match="price"):
        await generator.propose(replace(own, caps=BudgetCaps(cost_usd=5.0)))
    capped = replace(own, caps=BudgetCaps(tokens=100_000))
    assert (await generator.propose(capped)).candidate is not None
