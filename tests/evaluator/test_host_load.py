"""Who has the host's cores while times are taken, by a made-up /proc."""

import os
from pathlib import Path

import pytest

from evaluator_svc.hardware.host_load import HostLoad, LoadMeter
from kernel_foundry.domain.finding import FindingKind

_TICKS = os.sysconf("SC_CLK_TCK")
_RUNNER = 4242


class _Host:
    """A host of four cores: what all programs and what our two processes took, in seconds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now_s = 0.0
        self.tell(everybody_s=0.0, own_s=0.0, runner_s=0.0)

    def tell(self, *, everybody_s: float, own_s: float, runner_s: float) -> None:
        (self.folder / "stat").write_text(f"cpu  {round(everybody_s * _TICKS)} 0 0 9 9 0 0 0 0 0\n")
        for process, seconds, children in (
            (os.getpid(), own_s, f"{_RUNNER} 77 "),
            (_RUNNER, runner_s, ""),
        ):
            folder = self.folder / str(process) / "task" / str(process)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "children").write_text(children)  # 77 has ended since
            times = f"{round(seconds * _TICKS)} 0 0 0"
            stat = f"{process} (a) name)) S 1 1 1 0 -1 0 0 0 0 0 {times} 20 0\n"
            (self.folder / str(process) / "stat").write_text(stat)

    def meter(self, needed_cores: int) -> LoadMeter:
        return LoadMeter(needed_cores, core_count=4, proc=self.folder, clock=lambda: self.now_s)


@pytest.mark.parametrize(
    ("everybody_s", "needed_cores", "others", "is_loaded"),
    [
        (4.0, 4, 0.0, False),  # all cores, all of them ours
        (4.0, 2, 0.0, False),
        (6.0, 2, 1.0, False),  # two cores were left to us
        (8.0, 4, 2.0, True),
        (8.0, 2, 2.0, False),
        (9.0, 2, 2.5, True),
        (8.0, 1, 2.0, False),  # a GPU's host thread
    ],
)
def test_others_count_when_they_take_cores_that_are_needed(
    tmp_path: Path, everybody_s: float, needed_cores: int, others: float, is_loaded: bool
) -> None:
    host = _Host(tmp_path)
    meter = host.meter(needed_cores)
    host.now_s = 2.0
    host.tell(everybody_s=everybody_s, own_s=1.0, runner_s=3.0)
    load = meter.load()
    assert load is not None
    assert load.other_cores == pytest.approx(others)
    assert load.is_loaded is is_loaded


def test_nothing_is_said_of_a_moment_too_short_to_tell(tmp_path: Path) -> None:
    host = _Host(tmp_path)
    meter = host.meter(4)
    host.now_s = 0.05
    assert meter.load() is None


def test_a_host_that_tells_nothing_is_not_called_loaded(tmp_path: Path) -> None:
    meter = LoadMeter(1, core_count=4, proc=tmp_path / "nothing", clock=iter((0.0, 9.0)).__next__)
    assert meter.load() is None


def test_the_real_host_counts_our_own_work_as_ours() -> None:
    """What this process does is never another program's."""
    meter = LoadMeter(1)
    while (load := meter.load()) is None:
        pass
    assert load.other_cores <= load.core_count


def test_a_loaded_moment_is_said_with_its_figures() -> None:
    quiet = HostLoad(other_cores=0.1, core_count=2, needed_cores=2)
    assert quiet.finding() is None
    found = HostLoad(other_cores=1.34, core_count=2, needed_cores=2).finding()
    assert found is not None
    assert found.kind is FindingKind.LOADED_HOST
    assert "other programs took 1.3 of 2 cores" in found.message
