"""Runners that live side by side: of two devices, or of two users of one evaluator."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator_svc.processes.forking import RUNNER
from evaluator_svc.processes.locked_starter import LockedStarter
from evaluator_svc.processes.process import ChildProcess, ProcessLauncher
from evaluator_svc.sandbox.attempt import AttemptRequest, AttemptResult, AttemptTargets
from evaluator_svc.settings import EvaluatorSettings

_REACHING = (
    "environment_of_other", "memory_of_other", "descriptors_of_other", "command_line_of_other",
    "signal", "pace_of_other", "ptrace", "process_vm_readv", "pidfd_getfd", "write_shared_memory",
    "named_memory", "socket_unix",
)  # fmt: skip
"""All ways to another process, or to memory that both could name."""


@pytest.fixture(params=["bubblewrap", "landlock"])
def runners(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[ChildProcess, ChildProcess]]:
    """Two runners that wait for a candidate."""
    launcher = ProcessLauncher()
    wanted = request.param == "bubblewrap"
    settings = EvaluatorSettings(cache_dir=tmp_path, use_bubblewrap=wanted)
    starter = LockedStarter(settings, launcher)
    started = [starter.start(RUNNER, kind="null", index=0) for _ in range(2)]
    _, ready = started[0]
    if wanted and "bubblewrap" not in ready.isolation.mechanisms:
        pytest.skip(ready.isolation.missing[0])
    first, second = (process for process, _ in started)
    yield first, second
    for process in (first, second):
        process.kill()
    starter.close()
    launcher.close()


def _tried(process: ChildProcess, name: str, other: int) -> AttemptResult:
    targets = AttemptTargets(
        processes=(other,),
        secrets=(),
        token="token",
        outside="/nowhere/kernel-foundry-two-runners",
        port=1,
        abstract_name="",
        scratch="/tmp",
        memory_bytes=1,
        file_bytes=1,
        open_files=1,
    )
    request = AttemptRequest(name=name, targets=targets)
    answer: AttemptResult = process.ask(request, AttemptResult, timeout_seconds=60.0).message
    return answer


def test_neither_reaches_the_other(runners: tuple[ChildProcess, ChildProcess]) -> None:
    """Buffers lie in memory without a name, and descriptors are not to be had."""
    first, second = runners
    for one, other in ((first, second.process_id), (second, first.process_id)):
        succeeded = [name for name in _REACHING if _tried(one, name, other).succeeded]
        assert succeeded == []


def test_who_is_not_locked_in_reaches_both(runners: tuple[ChildProcess, ChildProcess]) -> None:
    for process in runners:
        assert list(Path(f"/proc/{process.process_id}/fd").iterdir())
        assert Path(f"/proc/{process.process_id}/environ").read_bytes()


def test_scratch_folders_are_not_shared(runners: tuple[ChildProcess, ChildProcess]) -> None:
    """Each has its own, which goes with it."""
    first, second = runners
    if first.scratch is None or second.scratch is None:
        return  # inside bubblewrap there is nothing on the host
    assert first.scratch.name != second.scratch.name
    assert Path(first.scratch.name).stat().st_mode & 0o077 == 0
