"""Counters of another process, by events that every kernel has; and why there are none."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator_svc.hardware import perf_events
from evaluator_svc.hardware.perf_events import PerfCounters, PerfEvent, open_counters
from evaluator_svc.processes.core_times import CoreTimes

_FAULTS = PerfEvent(name="page_faults", type=1, config=2)
_UNKNOWN = PerfEvent(name="unknown", type=1, config=9999)
_PROGRAM = """
import mmap, sys, threading
sys.stdin.readline()
def touch():
    memory = mmap.mmap(-1, 4096 * 300)
    for page in range(300):
        memory[4096 * page] = 1
thread = threading.Thread(target=touch)
thread.start()
thread.join()
print(flush=True)
sys.stdin.readline()
"""


def test_what_a_process_and_its_new_threads_do_is_counted() -> None:
    """300 pages are touched for the first time, by a thread that begins later."""
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            opened = open_counters(CoreTimes.of(process.pid).on_core, (_FAULTS, _UNKNOWN))
            if isinstance(opened, str):
                pytest.skip(opened)
            with opened:
                before = opened.read()
                process.stdin.write("\n")
                process.stdin.flush()
                process.stdout.readline()
                after = opened.read()
        finally:
            process.kill()
    assert set(after) == {"page_faults"}
    assert after["page_faults"] - before["page_faults"] >= 300


def test_an_event_that_there_is_not_is_a_reason() -> None:
    found = open_counters([0], (_UNKNOWN,))

    assert isinstance(found, str)
    assert found.startswith("perf_event: ")


def test_a_thread_that_has_ended_is_a_reason_too() -> None:
    assert open_counters([], (_FAULTS,)) == f"perf_event: {os.strerror(errno.ESRCH)}"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (errno.ENOENT, "no hardware counters here"),
        (errno.EACCES, "not allowed (perf_event_paranoid is 4)"),
        (errno.ENOSYS, os.strerror(errno.ENOSYS)),
    ],
)
def test_a_refusal_is_told_by_its_code(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: int, words: str
) -> None:
    (tmp_path / "paranoid").write_text("4\n")
    monkeypatch.setattr(perf_events, "_PARANOID", tmp_path / "paranoid")
    monkeypatch.setattr(perf_events, "_open", lambda *_: -code)

    assert words in perf_events.closed_counters()


def test_a_counter_that_had_turns_only_is_scaled(tmp_path: Path) -> None:
    """Value, time enabled and time counted: a quarter of the time counts four times."""
    file = tmp_path / "counter"
    file.write_bytes(b"".join(n.to_bytes(8, "little") for n in (10, 400, 100)))
    with PerfCounters({"cycles": [os.open(file, os.O_RDONLY)]}) as counters:
        assert counters.read() == {"cycles": 40.0}
