from collections.abc import Iterator

import pytest

from evaluator_svc.hardware.device_lock import DeviceLock
from evaluator_svc.processes.forking import INSPECTOR
from evaluator_svc.processes.locked_starter import LockedStarter
from evaluator_svc.processes.process import ProcessLauncher
from evaluator_svc.processes.spare_pool import SparePool
from evaluator_svc.settings import EvaluatorSettings


@pytest.fixture(scope="module")
def inspectors() -> Iterator[SparePool]:
    """Real ones, started as for candidates, when they are taken."""
    launcher = ProcessLauncher()
    starter = LockedStarter(EvaluatorSettings(), launcher)

    def start():
        return starter.start(INSPECTOR, kind="sycl", index=0)[0]

    pool = SparePool(start, device_lock=DeviceLock(), size=0)
    yield pool
    pool.close()
    starter.close()
    launcher.close()
