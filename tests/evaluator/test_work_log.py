"""Each piece of work has a line at its begin and one at its end, also where it fails."""

import logging

import pytest

from evaluator_svc.work_log import logged
from kernel_foundry.domain.task import Task, Workload

TASK = Task(name="relu", reference="class Model: ...", workloads=(Workload(name="default"),))


def test_begin_and_end_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "evaluator_svc"):
        with logged("admission", TASK, "null:0") as ended:
            ended("admitted")
        with pytest.raises(KeyError), logged("verdict on 1f0c9a7e", TASK, "null:0"):
            raise KeyError
    lines = [
        record.getMessage().rpartition(",")[0] or record.getMessage() for record in caplog.records
    ]
    assert lines == [
        "admission of relu on null:0 begins",
        "admission of relu on null:0: admitted",
        "verdict on 1f0c9a7e of relu on null:0 begins",
        "verdict on 1f0c9a7e of relu on null:0: failed",
    ]
