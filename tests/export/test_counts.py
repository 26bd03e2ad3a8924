"""Counts of calls are exact, whoever calls."""

import sys
import threading

from kernel_foundry.sdk.export.runtime.counts import Counts


def test_no_count_of_several_threads_is_lost() -> None:
    counts = Counts("product")
    begin = threading.Barrier(4)

    def work() -> None:
        begin.wait()
        for number in range(2000):
            counts.add_kernel()
            if number % 100 == 0:
                counts.reference("autocast is on")
                counts.shown()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    expected = {"kernel": 8000, "reference": 80, "last_reason": "autocast is on"}
    for _ in range(2):  # to look changes nothing
        assert counts.shown() == expected | {"reasons": {"autocast is on": 80}}
    counts.reset()
    counts.add_kernel()
    assert counts.shown() == {"kernel": 1, "reference": 0, "last_reason": "", "reasons": {}}


def test_a_call_within_a_count_is_counted() -> None:
    """As of a signal's handler."""
    counts = Counts("product")
    with counts._lock:
        counts.reference("autocast is on")
        counts.add_kernel()
        assert counts.shown()["kernel"] == 1
