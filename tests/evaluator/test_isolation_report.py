"""What is in force is told for each kind of process, and no sandbox is a refusal."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from evaluator_svc.evaluator import LocalEvaluator
from evaluator_svc.processes.locked_starter import FILE_BYTES, INSPECTOR_BYTES, OPEN_FILES
from evaluator_svc.sandbox.host_paths import package_root
from kernel_foundry.domain.device import Capabilities
from tests.quick_settings import quick_settings

MEMORY_BYTES = 1 << 30

_BARE_HOST = """
import asyncio, dataclasses, json, os
from evaluator_svc.evaluator import LocalEvaluator
from evaluator_svc.sandbox import limits, seccomp
from evaluator_svc.settings import EvaluatorSettings
from kernel_foundry.errors import KernelFoundryError

missing = [seccomp._when(number, [seccomp._ABSENT]) for number in (317, 444)]
limits.forbid_new_privileges()
seccomp.install([(seccomp._LOAD, 0, 0, 0), *sum(missing, []), seccomp._ALLOWED])

async def told(unsafe_no_sandbox):
    evaluator = LocalEvaluator(dataclasses.replace(
        EvaluatorSettings.from_environment(os.environ), device_kinds=("null",),
        use_bubblewrap=False, unsafe_no_sandbox=unsafe_no_sandbox))
    try:
        return " ".join((await evaluator.capabilities()).isolation.mechanisms)
    except KernelFoundryError as error:
        return f"{type(error).__name__}: {error}"
    finally:
        await evaluator.close()

print(json.dumps([asyncio.run(told(unsafe)) for unsafe in (False, True)]))
"""
"""On a kernel, as the process sees it, with neither seccomp nor Landlock."""


@pytest.fixture(scope="module")
def capabilities() -> Iterator[Capabilities]:
    """Of an evaluator without devices but the null one."""
    settings = quick_settings(
        device_kinds=("null",),
        builder_memory_bytes=MEMORY_BYTES,
        runner_memory_bytes=2 * MEMORY_BYTES,
    )
    evaluator = LocalEvaluator(settings)
    yield asyncio.run(evaluator.capabilities())
    asyncio.run(evaluator.close())


def test_every_kind_of_process_is_reported_with_its_limits(capabilities: Capabilities) -> None:
    reports = {report.process: report for report in capabilities.processes}
    memory_bytes = {
        "null builder": MEMORY_BYTES,
        "null inspector": INSPECTOR_BYTES,
        "null runner": 2 * MEMORY_BYTES,
        "null library runner": 2 * MEMORY_BYTES,
    }
    assert list(reports) == list(memory_bytes)
    for name, report in reports.items():
        limits = {limit.name: limit.value for limit in report.limits}
        assert limits["memory_bytes"] == memory_bytes[name]
        assert (limits["file_bytes"], limits["open_files"]) == (FILE_BYTES, OPEN_FILES)
        assert limits["processes"] == 0
        assert any(rule.startswith("seccomp: ") for rule in report.rules)
        assert report.is_sufficient


def test_what_holds_for_all_is_what_none_lacks(capabilities: Capabilities) -> None:
    """A library runner is forked, so that bubblewrap holds for the others alone."""
    assert set(capabilities.isolation.mechanisms) == {
        "landlock", "rlimits", "capabilities", "seccomp",
    }  # fmt: skip
    library = capabilities.processes[-1]
    assert any(reason.startswith("bubblewrap: not around a forked") for reason in library.missing)
    assert any("no such process has been started" in reason for reason in library.missing)


@pytest.fixture(scope="module")
def on_a_bare_host() -> tuple[str, str]:
    """What an evaluator says there: one that asks for a sandbox, and one that goes without."""
    ended = subprocess.run(
        [sys.executable, "-P", "-c", _BARE_HOST],
        env={**os.environ, "PYTHONPATH": package_root()},
        capture_output=True,
        text=True,
        check=True,
        timeout=280,
    )
    refusal, mechanisms = json.loads(ended.stdout)
    return refusal, mechanisms


def test_without_a_sandbox_nothing_is_run(on_a_bare_host: tuple[str, str]) -> None:
    """The error is a typed one; it says what is missing and how to go on all the same."""
    said, _ = on_a_bare_host
    assert said.startswith("IsolationUnavailableError: ")
    assert "landlock_create_ruleset: Function not implemented" in said
    assert "seccomp: Function not implemented" in said
    assert "--unsafe-no-sandbox" in said


def test_going_without_is_told_as_such(on_a_bare_host: tuple[str, str]) -> None:
    """What is left is named, and nothing that is not there."""
    _, mechanisms = on_a_bare_host
    assert mechanisms.split() == ["rlimits", "capabilities"]
