"""The benchmark of what a suite costs measures what it says, on a small one."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks import suite_overhead


def test_it_measures_suites_and_their_runs_made_singly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "result.json"
    asked = ["--tasks", "3", "--fewer-tasks", "2", "--paired-tasks", "1", "--evaluations", "4"]
    monkeypatch.setattr(sys, "argv", ["suite_overhead", *asked, "--out", str(out)])
    monkeypatch.setattr(suite_overhead, "_PAIRS", 1)
    monkeypatch.setattr(suite_overhead, "_EVALUATION_S", (0.05,))
    suite_overhead.main()
    found = json.loads(out.read_text())
    assert (found["tasks"], found["finished"]) == (3, 3)
    assert found["evaluations"] >= 12
    assert found["with_fewer_tasks"]["finished"] == 2
    assert found["show_resident_peak_mib"] >= found["resident_peak_mib"] > 10
    (slow,) = found["beside_single_runs"]
    assert slow["evaluation_ms"] == 50.0
    assert len(slow["suite_wall_s"]) == len(slow["singly_wall_s"]) == 1
    assert slow["singly_wall_s"][0] > 4 * 0.05
