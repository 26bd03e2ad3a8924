"""Searches that an agent starts: what they answer, what they may spend, and how they end."""

from pathlib import Path

import pytest

from tests.mcp_server.conftest import agent_of, answer, refusal

RUN = {"task": "relu.py", "device": "null:0"}


@pytest.mark.slow
async def test_a_run_from_its_start_to_its_winner(agent_folder: Path, served: str) -> None:
    async with agent_of(agent_folder, served, "--evaluations", "20") as agent:
        start = {**RUN, "start_from": ["relu.md"], "evaluations": 2, "run": "first"}
        started = await answer(agent, "optimize_start", **start)
        assert (started["run"], started["task"]) == ("first", "relu")

        status = await answer(agent, "optimize_status", run="first", wait_seconds=60)
        assert (status["state"], status["failure"]) == ("finished", "")
        assert status["outcomes"]["PASSED"] > 0

        ended = await answer(agent, "optimize_result")
        assert ended["winner"]["passed"]
        assert ended["is_exact"]
        again = await answer(agent, "evaluate", task="relu.py", candidate=ended["candidate"])
        assert again["passed"]

        report = await agent.read_resource("kernel-foundry://runs/first/report")
        assert ended["winner"]["candidate"] in report.contents[0].text
        digest = ended["winner"]["candidate"][:16]
        shown = await agent.read_resource(f"kernel-foundry://candidates/{digest}")
        assert "def launch" in shown.contents[0].text

        kernels = await answer(agent, "verified_kernels", language="sycl", task="relu.py")
        assert [k["run"] for k in kernels["result"]] == ["first"]
        assert kernels["result"][0]["likeness"] == 1.0

        checked = await answer(agent, "verify", run="first")
        assert checked["result"][0]["numbers_confirmed"]
        agreements = {s["subject"]: s["agreement"] for s in checked["result"][0]["statements"]}
        assert agreements["digest"] == "agrees"

        for out in ("../out.py", "relu.py", "no/such/out.py", "/tmp/out.py", "link.py"):
            said = await refusal(agent, "export", out=out)
            assert "root" in said or "not replaced" in said


@pytest.mark.slow
async def test_a_run_ends_when_it_is_told_to(agent_folder: Path, served: str) -> None:
    async with agent_of(agent_folder, served, "--evaluations", "300") as agent:
        assert "--usd" in await refusal(agent, "optimize_start", **RUN, models=["openai/gpt-5"])
        assert "root" in await refusal(agent, "optimize_start", **RUN, start_from=["../outside.py"])
        beyond = await refusal(agent, "optimize_start", **RUN, evaluations=301)
        assert "300 of 300 left" in beyond
        assert "started no run" in await refusal(agent, "optimize_cancel", run="")

        await answer(agent, "optimize_start", **RUN, evaluations=300, run="long")
        assert "goes on" in await refusal(agent, "optimize_start", **RUN, evaluations=1)
        assert "0 of 300 left" in await refusal(agent, "build", task="relu.py", candidate="")

        status = await answer(agent, "optimize_cancel", run="long")
        assert status["state"] == "interrupted"
        # What it did not use is there again.
        built = await answer(agent, "build", task="relu.py", candidate="")
        assert built["outcome"] == "EXTRACTION_FAILED"
