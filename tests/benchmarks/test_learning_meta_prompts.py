"""The benchmark of evolving guidance in its short form: whole runs over HTTP, on and off."""

from pathlib import Path

import pytest

from benchmarks.guided_provider import TASKS
from benchmarks.learning_meta_prompts import EVALUATIONS, learn


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-benchmark")
    monkeypatch.setenv("OPENAI_BASE_URL", "set by the benchmark, restored by this")


@pytest.mark.slow
async def test_every_verdict_credits_guidance_and_edits_are_asked_for(tmp_path: Path) -> None:
    found = await learn(tmp_path, rounds=1, seed=0, is_on=True)
    assert sum(prompt["uses"] for prompt in found["prompts"]) == EVALUATIONS * len(TASKS)
    assert found["edits"]
    assert sum(found["editor"].values()) >= len(found["edits"])
    assert found["prompts"][0]["state"] == "seed"
    # Guidance on trial gets at most every fourth proposal.
    assert found["prompts"][0]["uses"] >= EVALUATIONS * len(TASKS) * 0.7


@pytest.mark.slow
async def test_switched_off_nobody_is_asked_for_edits(tmp_path: Path) -> None:
    found = await learn(tmp_path, rounds=1, seed=0, is_on=False)
    assert found["editor"] == {}
    assert found["edits"] == []
    assert [prompt["uses"] for prompt in found["prompts"]] == [0]
