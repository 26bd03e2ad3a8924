"""Searches that an agent starts: what they may spend, and how they end."""

from pathlib import Path

import pytest

from tests.mcp_server.conftest import agent_of, answer, refusal

RUN = {"task": "relu.py", "device": "null:0"}


@pytest.mark.slow
async def test_a_run_ends_when_it_is_told_to(agent_folder: Path, served: str) -> None:
    async with agent_of(agent_folder, served, "--evaluations", "300") as agent:
        assert "--usd" in await refusal(agent, "optimize_start", **RUN, models=["openai/gpt-5"])
        assert "root" in await refusal(agent, "optimize_start", **RUN, start_from=["../outside.py"])
        beyond = await refusal(agent, "optimize_start", **RUN, evaluations=301)
        assert "300 of 300 left" in beyond
        assert "started no run" in await refusal(agent, "optimize_cancel", run="")

        for out in ("../out.py", "relu.py", "no/such/out.py", "/tmp/out.py", "link.py"):
            said = await refusal(agent, "export", out=out)
            assert "root" in said or "not replaced" in said

        await answer(agent, "optimize_start", **RUN, evaluations=300, run="long")
        assert "goes on" in await refusal(agent, "optimize_start", **RUN, evaluations=1)
        assert "0 of 300 left" in await refusal(agent, "build", task="relu.py", candidate="")

        status = await answer(agent, "optimize_cancel", run="long")
        assert status["state"] == "interrupted"
        # What it did not use is there again.
        built = await answer(agent, "build", task="relu.py", candidate="")
        assert built["outcome"] == "EXTRACTION_FAILED"
