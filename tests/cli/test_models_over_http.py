"""The command on a provider of one's own: a whole run over HTTP, its books, and its keys."""

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from tests.cli.conftest import BEYOND_RECIPES, CANDIDATE, TASK, run_kfoundry
from tests.llm_server import Answer, LlmServer, ReceivedRequest, error, good, refusal, truncated
from tests.report_data import held_data

_KEY = "planted.9f3a-Zq71xW"
_OWN = "openai/own/model:8b[/b]"
"""Servers call their models what they like, also what would be markup of a terminal."""

_MODELS = (_OWN, "memory=openai/of-one-expert")


def _reply(request: ReceivedRequest) -> Answer:
    """Mostly a new variant; now and then a failure that tells the key that was sent."""
    text = CANDIDATE.replace("```sycl\n", f"```sycl\n// variant {request.number}\n")
    rng = random.Random(request.number)
    if rng.random() < 0.7:
        return good(text)
    return rng.choice(
        [
            error(500, "server_error", f"cannot bill {request.key}"),
            refusal(f"not for {request.key}"),
            good(f"Your key is {request.key}."),
            truncated(text[:60]),
        ]
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a task and no data yet."""
    (tmp_path / "relu.py").write_text(TASK)
    return tmp_path


@pytest.mark.slow
def test_a_run_on_models_over_http(
    llm_server: LlmServer, folder: Path, served: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every request is in the run's books, by model; the key is in no file and no output."""
    monkeypatch.setenv("OPENAI_API_KEY", _KEY)
    llm_server.behaviour = _reply
    models = [argument for model in _MODELS for argument in ("--model", model)]
    ended = run_kfoundry(
        folder,
        "optimize",
        "relu.py",
        *models,
        "--device",
        "null:0",
        "--run",
        "r",
        "--evaluations",
        "10",
        "--json",
        evaluator=served,
    )
    assert ended.returncode == 0, ended.stderr
    shown = run_kfoundry(folder, "runs", "show", "r", "--json")
    report = run_kfoundry(folder, "runs", "report", "r")
    assert shown.returncode == report.returncode == 0, shown.stderr + report.stderr
    for command in ("show", "exchanges"):
        told = run_kfoundry(folder, "runs", command, "r")
        assert (told.returncode, told.stderr) == (0, "")
        assert _OWN in told.stdout

    spend = json.loads(shown.stdout)["spend"]
    received = Counter(f"openai/{request.model}" for request in llm_server.requests)
    assert {model: of["requests"] for model, of in spend.items()} == received
    assert received.keys() == {_OWN, "openai/of-one-expert"}
    assert sum(of["retries"] for of in spend.values()) > 0
    assert all(of["prompt_tokens"] > 0 and of["completion_tokens"] > 0 for of in spend.values())

    assert {request.key for request in llm_server.requests} == {_KEY}
    outputs = [text for done in (ended, shown, report) for text in (done.stdout, done.stderr)]
    assert not [text for text in outputs if _KEY in text]
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {"runs.db", "generator.db"} <= {path.name for path in files}
    assert not [path for path in files if _KEY.encode() in path.read_bytes()]


@pytest.mark.slow
def test_a_run_goes_on_without_recipes_that_cannot_do_its_task(
    llm_server: LlmServer, folder: Path, served: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Progress, store and report say so; recipes are never asked."""
    monkeypatch.setenv("OPENAI_API_KEY", _KEY)
    llm_server.behaviour = lambda _request: good(CANDIDATE)
    (folder / "bessel.py").write_text(BEYOND_RECIPES)
    run = ("--run", "j0", "--device", "null:0", "--evaluations", "1")
    models = ("--model", "recipes", "--model", _OWN)
    ended = run_kfoundry(folder, "optimize", "bessel.py", *models, *run, evaluator=served)
    assert ended.returncode in (0, 1), ended.stderr
    said = "recipes cannot do aten.special_bessel_j0"
    assert f"{said}: the run continues without it" in ended.stderr
    shown = run_kfoundry(folder, "runs", "show", "j0", "--json")
    told = json.loads(shown.stdout)
    assert told["models"] == [_OWN]
    assert told["left_out"] == [{"model": "recipes", "missing": "aten.special_bessel_j0"}]
    assert set(told["spend"]) == {_OWN}
    (report,) = folder.glob("data/reports/*.html")
    assert held_data(report)["run"]["left_out"] == told["left_out"]
