"""The protocol partner itself, met by a plain HTTP client."""

import base64
import struct
import time
from collections.abc import Iterator

import httpx
import pytest

from tests.llm_server import (
    FAULTS,
    Answer,
    LlmServer,
    ReceivedRequest,
    cut_body,
    dropped,
    embedding,
    good,
    hang,
    rate_limited,
    slow,
)


@pytest.fixture
def server() -> Iterator[LlmServer]:
    with LlmServer() as server:
        yield server


@pytest.fixture
def client(server: LlmServer) -> Iterator[httpx.Client]:
    headers = {"Authorization": "Bearer sk-any"}
    with httpx.Client(base_url=server.base_url, headers=headers, timeout=30.0) as client:
        yield client


@pytest.fixture
def impatient(server: LlmServer) -> Iterator[httpx.Client]:
    """A client for what never comes."""
    timeout = httpx.Timeout(30.0, read=0.3)
    with httpx.Client(base_url=server.base_url, timeout=timeout) as client:
        yield client


def _ask(client: httpx.Client, text: str = "hello") -> httpx.Response:
    messages = [{"role": "user", "content": text}]
    return client.post("/chat/completions", json={"model": "any", "messages": messages})


def test_every_request_is_recorded_with_its_key(server: LlmServer, client: httpx.Client) -> None:
    server.play(rate_limited(3.0), good("hi"))
    first, second = _ask(client, "one"), _ask(client, "two")
    assert (first.status_code, first.headers["retry-after"]) == (429, "3")
    assert second.json()["choices"][0]["message"]["content"] == "hi"
    assert second.json()["model"] == "any"
    assert [(r.number, r.text, r.key) for r in server.requests] == [
        (1, "one", "sk-any"),
        (2, "two", "sk-any"),
    ]


def test_a_function_may_decide_each_answer(server: LlmServer, client: httpx.Client) -> None:
    def echo(request: ReceivedRequest) -> Answer:
        return good(f"{request.number}: {request.text}")

    server.behaviour = echo
    assert _ask(client).json()["choices"][0]["message"]["content"] == "1: hello"


@pytest.mark.parametrize("answer", [cut_body(), dropped()], ids=["cut", "dropped"])
def test_what_never_comes_whole(server: LlmServer, client: httpx.Client, answer: Answer) -> None:
    server.behaviour = lambda _: answer
    with pytest.raises(httpx.RemoteProtocolError):
        _ask(client)
    assert len(server.requests) == 1


@pytest.mark.parametrize("answer", [hang(), slow("late", 30.0)], ids=["hang", "slow"])
def test_what_never_comes(server: LlmServer, impatient: httpx.Client, answer: Answer) -> None:
    server.behaviour = lambda _: answer
    with pytest.raises(httpx.ReadTimeout):
        _ask(impatient)
    _wait_for_the_first(server)
    assert len(server.requests) == 1


def _wait_for_the_first(server: LlmServer) -> None:
    """On a busy machine the server begins when nobody waits any more."""
    while not server.requests:
        time.sleep(0.01)


def test_who_stopped_waiting_is_in_flight_no_more(
    server: LlmServer, client: httpx.Client, impatient: httpx.Client
) -> None:
    server.play(hang(), good("hi"))
    with pytest.raises(httpx.ReadTimeout):
        _ask(impatient)
    _wait_for_the_first(server)
    while server.in_flight:
        time.sleep(0.01)
    _ask(client)
    assert server.most_in_flight == 1


def test_every_fault_can_be_made() -> None:
    assert {"slow", "rate_limited", "hang", "cut_body", "garbage", "wrong_json"} <= FAULTS.keys()
    assert all(FAULTS[name]() == FAULTS[name]() for name in FAULTS)


def test_a_behaviour_that_raises_is_seen() -> None:
    def fail(_: ReceivedRequest) -> Answer:
        raise LookupError("a bug of the test")

    with pytest.raises(LookupError, match="a bug"), LlmServer(fail) as server:
        assert httpx.post(f"{server.base_url}/chat/completions", json={}).status_code == 500


def test_embeddings_are_hashed(server: LlmServer, client: httpx.Client) -> None:
    body = {"model": "e", "input": ["shared memory", "memory shared", "warp shuffle"]}
    vectors = [d["embedding"] for d in client.post("/embeddings", json=body).json()["data"]]
    assert vectors[0] == pytest.approx(vectors[1])
    assert sum(a * b for a, b in zip(vectors[0], vectors[2], strict=True)) < 0.9
    packed = client.post("/embeddings", json={**body, "encoding_format": "base64"}).json()
    raw = base64.b64decode(packed["data"][2]["embedding"])
    assert struct.unpack(f"<{embedding.DIMENSIONS}f", raw) == pytest.approx(vectors[2])
    assert (len(server.embedding_requests), len(server.requests)) == (2, 0)
