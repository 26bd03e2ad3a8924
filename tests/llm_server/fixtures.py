"""The server as a fixture: `from tests.llm_server.fixtures import llm_server` in a conftest."""

import gc
import sys
import warnings
from collections.abc import Iterator

import pytest

from tests.llm_server.server import LlmServer

_MANY_MODULES = 100


class _FrozenModules:
    """What modules brought is left out of later collections: LiteLLM and torch take a second."""

    def __init__(self) -> None:
        self._count = 0

    def update(self) -> None:
        if len(sys.modules) > self._count + _MANY_MODULES:
            gc.collect()
            gc.freeze()
            self._count = len(sys.modules)


_FROZEN = _FrozenModules()


@pytest.fixture
def llm_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LlmServer]:
    """Return a server that everything here takes for OpenAI."""
    _FROZEN.update()
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
