"""The benchmark of device memory, at small sizes on the CPU device."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from benchmarks.memory import SMALL, Bench, host_memory, run, watched
from evaluator_svc.evaluator import LocalEvaluator
from kernel_foundry.domain.device import DeviceSpec


def test_the_most_that_was_in_use_is_seen() -> None:
    values = iter([5, *[9] * 3, *[7] * 10**6])

    with watched(lambda: next(values)) as peak:
        while peak.most < 9:
            pass

    assert (peak.before, peak.most) == (5, 9)


@pytest.mark.sycl
@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_all_cases_are_judged_alone_and_two_at_once(
    tmp_path: Path, local_evaluator: Callable[[str], LocalEvaluator]
) -> None:
    out = tmp_path / "memory.json"
    evaluator = local_evaluator("sycl")

    @asynccontextmanager
    async def opened(device: str, _limit_bytes: int) -> AsyncIterator[tuple[Bench, DeviceSpec]]:
        spec = (await evaluator.capabilities()).devices[0]
        yield Bench(evaluator, device, host_memory), spec

    await run("sycl:0", out, opened)

    written = json.loads(out.read_text())
    assert set(written["alone"]) == set(SMALL)
    outcomes = [e["outcome"] for item in written["alone"].values() for e in item["evaluations"]]
    assert outcomes == ["passed"] * 2 * len(SMALL)
    assert [e["outcome"] for e in written["together"]["evaluations"]] == ["passed", "passed"]
    assert written["usable_gb"] > 0
