"""Hints name the command as its user called it."""

import sys
from pathlib import Path

import pytest

from kernel_foundry.cli.name import as_called


def _program(path: Path) -> Path:
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_a_path_stays_one_and_a_name_on_the_path_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = _program(tmp_path / "kfoundry")
    monkeypatch.setattr(sys, "argv", [str(program)])
    monkeypatch.setenv("PATH", "/nowhere")
    assert f"{program} runs best" == as_called("runs best")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert as_called("runs best") == "kfoundry runs best"


def test_a_module_is_named_with_its_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/x/kernel_foundry/cli/__main__.py", "runs"])
    monkeypatch.setattr(sys, "orig_argv", [".venv/bin/python", "-m", "kernel_foundry.cli", "runs"])
    assert as_called("verify") == ".venv/bin/python -m kernel_foundry.cli verify"
