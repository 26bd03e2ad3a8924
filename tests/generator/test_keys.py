"""Keys stay in the environment: whatever a provider says, nothing that is kept repeats them."""

import logging
import random
import traceback
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from generator_svc.assembly import assemble
from generator_svc.generator import LocalGenerator
from generator_svc.llm.keys import REDACTED, secret_values, without_keys, without_secrets
from generator_svc.llm.litellm_models import LiteLlmModels
from generator_svc.llm.retrying import ModelRetryPolicy
from kernel_foundry.domain.request import ProposalRequest
from kernel_foundry.errors import KernelFoundryError
from tests.llm_server import Answer, LlmServer, ReceivedRequest, error, garbage, good, refusal

_KEY = "planted.9f3a-Zq71xW"
"""Of no shape that a pattern knows: only the environment tells that it is a key."""

_MODEL = "openai/gpt-5"

_ECHOES: dict[str, Callable[[ReceivedRequest], Answer]] = {
    "bad key": lambda r: error(401, "invalid_api_key", f"Incorrect API key provided: {r.key}."),
    "forbidden": lambda r: error(403, "forbidden", f"{r.key} may not"),
    "quota": lambda r: error(429, "insufficient_quota", f"nothing left on {r.key}"),
    "rate limit": lambda r: error(429, "rate_limit_exceeded", f"{r.key} asks too often"),
    "server error": lambda r: error(500, "server_error", f"lost track of {r.key}"),
    "bad request": lambda r: error(400, "invalid_request_error", f"headers: {r.headers}"),
    "policy": lambda r: error(400, "content_policy_violation", f"{r.key} said that"),
    "html": lambda r: garbage(f"<html>Bearer {r.key}</html>".encode()),
    "half JSON": lambda r: garbage(f'{{"key": "{r.key}'.encode(), "application/json"),
    "error with status 200": lambda r: Answer(document={"error": {"message": r.key}}),
    "refusal": lambda r: refusal(f"not for {r.key}"),
    "reply": lambda r: good(f"Your key is {r.key}."),
    "wrong usage": lambda r: Answer(
        document={"choices": [{"message": {"content": r.key}}], "usage": f"of {r.key}"}
    ),
}


@pytest.fixture
async def generator(tmp_path: Path) -> AsyncIterator[LocalGenerator]:
    """Return a generator whose data folder is the test's."""
    models = LiteLlmModels(
        timeout_seconds=30.0,
        retrying=ModelRetryPolicy(retry_count=1, first_back_off_seconds=0.01),
        rng=random.Random(1),
    )
    generator = assemble(
        store_url=f"sqlite:///{tmp_path / 'generator.db'}",
        exchanges=tmp_path / "exchanges",
        models=models,
    ).generator
    yield generator
    await generator.close()


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("echo", _ECHOES.values(), ids=_ECHOES)
async def test_a_key_is_in_nothing_that_is_kept(
    llm_server: LlmServer,
    generator: LocalGenerator,
    request_: ProposalRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    echo: Callable[[ReceivedRequest], Answer],
) -> None:
    """Files, logs at their most talkative, output, exceptions and proposals."""
    monkeypatch.setenv("OPENAI_API_KEY", _KEY)
    llm_server.behaviour = echo
    told = []
    with caplog.at_level(logging.DEBUG):
        for name in ("LiteLLM", "LiteLLM Router", "openai", "httpx", "httpcore"):
            caplog.set_level(logging.DEBUG, logger=name)
        try:
            told.append(str(await generator.propose(replace(request_, models=(_MODEL,)))))
        except KernelFoundryError as failure:
            told.append("".join(traceback.format_exception(failure)))
            told.append(f"{failure.message} {failure.metadata}")
    assert {request.key for request in llm_server.requests} == {_KEY}
    told += [record.getMessage() for record in caplog.records]
    told += [caplog.text, *capfd.readouterr()]
    assert caplog.records
    assert not [text for text in told if _KEY in text]
    assert _files_with(b"", tmp_path)
    assert _files_with(_KEY.encode(), tmp_path) == []


def _files_with(text: bytes, folder: Path) -> list[Path]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if text in path.read_bytes()]


def test_what_is_secret_in_an_environment() -> None:
    """By the variable's name; words that stand for no key are left alone."""
    environment = {
        "OPENAI_API_KEY": "abc-1234567",
        "AWS_SECRET_ACCESS_KEY": "abcdefgh/1",
        "HF_TOKEN": "token.123456",
        "AZURE_API_KEY": "anything",
        "OTHER_API_KEY": "none",
        "HOME": "/home/someone1",
        "OPENAI_BASE_URL": "http://localhost:8000",
    }
    assert set(secret_values(environment)) == {"abc-1234567", "abcdefgh/1", "token.123456"}


def test_of_two_keys_the_longer_goes_first() -> None:
    """No end of it is left."""
    environment = {"A_KEY": "abc-12345", "B_KEY": "abc-12345-6789"}
    assert without_secrets("abc-12345-6789!", environment) == f"{REDACTED}!"


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: sk-abcd1234efgh.",
        "Incorrect API key provided: sk-ab***************gh.",
        "sk-proj-AbC_123-xyz4567890",
        "Authorization: Bearer eyJhbGciOi.J9-x_y",
        "https://host/v1/models?key=AIzaSyA1234567890abcdef&alt=json",
        "xai-1234567890abcd",
    ],
)
def test_what_looks_like_a_key_is_cut_out_of_a_providers_words(text: str) -> None:
    """Half hidden by the provider, or somebody else's."""
    cleaned = without_keys(text, {})
    assert REDACTED in cleaned
    assert not any(part in cleaned for part in ("1234", "***", "AbC", "eyJ", "gh."))


def test_code_is_left_alone() -> None:
    """A kernel has words with dashes and pointers, too."""
    code = "const float* sk = task-based; // risk-free, disk-cached"
    assert without_keys(code, {}) == without_secrets(code, {}) == code
