"""The server as a fixture: `from tests.llm_server.fixtures import llm_server` in a conftest."""

import gc
import warnings
from collections.abc import Iterator

import pytest

from tests.llm_server.server import LlmServer


@pytest.fixture
def llm_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LlmServer]:
    """Return a server that everything here takes for OpenAI."""
    gc.freeze()  # what is there already holds none of it, and takes a second to look through
    with LlmServer() as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.delenv("OPENAI_API_BASE", raising=False)
        yield server
    # An SDK may leave the connection of a cut answer open. It is collected with this test: a
    # warning in a later one would blame that.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
    gc.unfreeze()
