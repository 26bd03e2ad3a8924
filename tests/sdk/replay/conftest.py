"""One recorded run for all tests that only read it."""

import asyncio
import gc
import shutil
import warnings
from pathlib import Path

import pytest

from tests.llm_server.server import LlmServer
from tests.sdk.replay.recorded import Model, Recorded, record


@pytest.fixture(scope="session")
def recorded_once(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """A run of over a hundred evaluations with a restart in the middle; nobody changes it."""
    with LlmServer(Model()) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "sk-test")
        patch.setenv("OPENAI_BASE_URL", server.base_url)
        patch.delenv("OPENAI_API_BASE", raising=False)
        folder = tmp_path_factory.mktemp("recorded")
        with warnings.catch_warnings():
            # LiteLLM's own, of calls that are cancelled when the run is interrupted.
            warnings.filterwarnings("ignore", message="coroutine 'OpenAIChatCompletion")
            recorded = asyncio.run(record(folder, budgets=(50, 120)))
            gc.collect()
    return recorded  # nobody is there to be asked any more


@pytest.fixture
def recorded(recorded_once: Recorded, tmp_path: Path) -> Recorded:
    """A copy of that run to change."""
    folder = tmp_path / "recorded"
    shutil.copytree(recorded_once.folder, folder)
    return Recorded(folder=folder)
