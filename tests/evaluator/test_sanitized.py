"""What is promoted has been looked at by every sanitizer; what one finds refuses it."""

from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from evaluator_svc.messages.draw import Draw
from evaluator_svc.pipeline import tools
from evaluator_svc.pipeline.tools import sanitized
from evaluator_svc.processes.call_stop import CallStop, CallStoppedError
from kernel_foundry.domain.check import CheckKind, CheckResult
from kernel_foundry.domain.evaluation import EvaluationOutcome

_DRAW = Draw(draw=1, workload="small", size_bytes=0, slots=(), seed_count=1)
_RERUN: Any = object()
_MEMCHECK = Path(__file__).parents[1] / "tools" / "recorded" / "memcheck.txt"


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Puts a shell script in the tool's place; nothing is run under it."""

    @contextmanager
    def command(*_: object):
        yield ("true",), {"PATH": "/usr/bin:/bin"}

    monkeypatch.setattr(tools, "_command", command)

    def install(script: str) -> None:
        program = tmp_path / "compute-sanitizer"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("KERNEL_FOUNDRY_COMPUTE_SANITIZER", str(program))

    return install


def test_all_four_are_asked(tool) -> None:
    tool('echo "========= COMPUTE-SANITIZER"')
    found = sanitized(_RERUN, _DRAW)
    assert found.failure is None
    assert [(c.kind, c.result) for c in found.checks] == [
        (CheckKind.SANITIZER, CheckResult.PASSED)
    ] * 4
    said = " ".join(check.note for check in found.checks)
    assert all(name in said for name in ("memcheck", "racecheck", "synccheck", "initcheck"))


def test_a_call_that_is_stopped_ends_them(tool) -> None:
    tool("sleep 60")
    stop = CallStop()
    stop.set()
    with stop.in_force(), pytest.raises(CallStoppedError):
        sanitized(_RERUN, _DRAW)


@pytest.mark.parametrize(
    ("name", "outcome", "passed"),
    [
        ("memcheck", EvaluationOutcome.CRASHED, 0),
        ("racecheck", EvaluationOutcome.NONDETERMINISTIC, 1),
        ("synccheck", EvaluationOutcome.NONDETERMINISTIC, 2),
        ("initcheck", EvaluationOutcome.WRONG_RESULT, 3),
    ],
)
def test_an_error_of_any_of_them_refuses(tool, name, outcome, passed) -> None:
    clean = 'echo "========= COMPUTE-SANITIZER"'
    tool(f'case "$*" in *{name}*) cat {_MEMCHECK};; *) {clean};; esac')
    found = sanitized(_RERUN, _DRAW)
    assert found.failure is not None
    assert found.failure.outcome is outcome
    assert found.failure.findings[0].line == 3
    results = [check.result for check in found.checks]
    assert results == [CheckResult.PASSED] * passed + [CheckResult.FAILED]


@pytest.mark.parametrize("script", ["exit 1", 'echo "Internal Sanitizer Error"'])
def test_a_tool_that_fails_refuses_nobody_and_says_so(tool, script) -> None:
    tool(script)
    found = sanitized(_RERUN, _DRAW)
    assert found.failure is None
    assert {check.result for check in found.checks} == {CheckResult.SKIPPED}
    assert all("failed" in check.note for check in found.checks)


def test_without_a_tool_for_it_the_check_is_skipped() -> None:
    (check,) = sanitized(None, _DRAW).checks
    assert check.result is CheckResult.SKIPPED
    assert "no sanitizer" in check.note
