"""Recorded runs are read by the code that is here now: benchmarks and readers begin with them."""

from pathlib import Path

import pytest

from benchmarks.archive_runs import RECORDED, read_recorded

RUNS = sorted(RECORDED.parent.glob("*.jsonl.gz"))


@pytest.mark.parametrize("path", RUNS, ids=lambda path: str(path.name).partition(".")[0])
def test_a_recorded_run_is_read(tmp_path: Path, path: Path) -> None:
    run = read_recorded(tmp_path, path)
    assert run.spec.name
    assert any(verdict.speedup for _, verdict in run.verdicts)
