"""A whole run whose proposals come from a coding agent, by the command."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from tests import scripted_agent
from tests.cli.conftest import CANDIDATE, TASK, environment_of, run_kfoundry


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "relu.py").write_text(TASK)
    (tmp_path / "reply.md").write_text(CANDIDATE)
    shutil.copy(str(scripted_agent.__file__), tmp_path / "agent.py")
    return tmp_path


@pytest.mark.slow
def test_a_run_with_an_agent(folder: Path, served: str) -> None:
    """Its candidate is judged; show and exchanges name it."""
    environment = environment_of(folder)
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    model = "agent:python agent.py vary"
    run = ("--run", "a", "--device", "null:0", "--evaluations", "1", "--json")
    ended = run_kfoundry(
        folder, "optimize", "relu.py", "--model", model, *run,
        evaluator=served, environment=environment,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    shown = run_kfoundry(folder, "runs", "show", "a", "--json", environment=environment)
    spend = json.loads(shown.stdout)["spend"]
    assert spend.keys() == {model}
    assert 1 <= spend[model]["requests"] <= 10  # some may be in flight when the run ends
    assert json.loads(ended.stdout)["best"]
    assert model in run_kfoundry(folder, "runs", "exchanges", "a", environment=environment).stdout


@pytest.mark.slow
def test_a_missing_agent_ends_the_run_at_once(folder: Path, served: str) -> None:
    ended = run_kfoundry(
        folder, "optimize", "relu.py", "--model", "agent:no-such-agent", "--device", "null:0",
        evaluator=served,
    )  # fmt: skip
    assert ended.returncode not in (0, 1)
    assert "no program 'no-such-agent'" in ended.stderr
    assert "Traceback" not in ended.stderr
