"""What an evaluator of this process does is on stderr while a command waits, and not before."""

import logging

import pytest

from evaluator_svc.work_log import logged
from kernel_foundry.cli.work_lines import WORK_LOG, work_lines
from tests.domain_values import run_spec


def test_lines_say_what_begins_and_ends(capsys: pytest.CaptureFixture[str]) -> None:
    task = run_spec().task
    with work_lines(), logged("admission", task, "sycl:0") as ended:
        ended("admitted")
    with logged("admission", task, "sycl:0") as ended:
        ended("admitted")
    out, err = capsys.readouterr()
    begins, ends = err.splitlines()
    assert begins == f"admission of {task.name} on sycl:0 begins"
    assert ends.startswith(f"admission of {task.name} on sycl:0: admitted, ")
    assert out == ""
    assert not logging.getLogger(WORK_LOG).handlers
