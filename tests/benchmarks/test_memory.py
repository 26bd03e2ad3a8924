"""The benchmark of device memory, at small sizes on the CPU device."""

import asyncio
import json
from pathlib import Path

import pytest

from benchmarks.memory import SMALL, run, watched


def test_the_most_that_was_in_use_is_seen() -> None:
    values = iter([5, *[9] * 3, *[7] * 10**6])

    with watched(lambda: next(values)) as peak:
        while peak.most < 9:
            pass

    assert (peak.before, peak.most) == (5, 9)


@pytest.mark.sycl
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_all_cases_are_judged_alone_and_two_at_once(tmp_path: Path) -> None:
    out = tmp_path / "memory.json"

    asyncio.run(run("sycl:0", out))

    written = json.loads(out.read_text())
    assert set(written["alone"]) == set(SMALL)
    outcomes = [e["outcome"] for item in written["alone"].values() for e in item["evaluations"]]
    assert outcomes == ["passed"] * 2 * len(SMALL)
    assert [e["outcome"] for e in written["together"]["evaluations"]] == ["passed", "passed"]
    assert written["usable_gb"] > 0
