"""One recorded run for all tests that only read it."""

import asyncio
import fcntl
import gc
import shutil
import warnings
from pathlib import Path

import pytest

from tests.llm_server.server import LlmServer
from tests.sdk.replay.recorded import Model, Recorded, record


@pytest.fixture(scope="session")
def recorded_once(shared_dir: Path) -> Recorded:
    """A run of over a hundred evaluations with a restart in the middle; nobody changes it.

    One of the session's processes makes it.
    """
    recorded = Recorded(folder=shared_dir / "recorded")
    with (shared_dir / "recorded.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not recorded.folder.exists():
            made = _record(shared_dir / "recording")
            made.folder.rename(recorded.folder)
    return recorded


def _record(folder: Path) -> Recorded:
    shutil.rmtree(folder, ignore_errors=True)  # of a process that did not come to its end
    folder.mkdir()
    with LlmServer(Model()) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "sk-test")
        patch.setenv("OPENAI_BASE_URL", server.base_url)
        patch.delenv("OPENAI_API_BASE", raising=False)
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
