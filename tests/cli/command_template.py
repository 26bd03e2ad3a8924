"""Processes of `kfoundry` that are forked from one which has imported it.

Imports are most of a short command, and those of LiteLLM most of a short search. Else each is what
`python -m kernel_foundry.cli` starts: arguments, folder, environment, outputs and exit code are its
own.
"""

import dataclasses
import gc
import importlib
import json
import os
import runpy
import select
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parents[2]
_MODULE: Final = "kernel_foundry.cli"
_IMPORTED: Final = (
    "alembic.context",
    "archive_svc.archive",
    "generator_svc.assembly",
    "kernel_foundry.rpc.readiness",
    *(f"kernel_foundry.cli.{n}" for n in ("evaluate", "experience", "optimize", "runs", "verify")),
    *(f"kernel_foundry.sdk.local.{n}" for n in ("archive", "evaluator", "generator")),
)
"""What several commands import, most of them when they run."""
_SECONDS: Final = 280


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Command:
    arguments: tuple[str, ...]
    folder: str
    environment: Mapping[str, str]
    stdout: str
    stderr: str


class CommandTemplate:
    """Runs commands one after the other; `close` ends the process that they are forked from."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __spec__.name],
            cwd=_ROOT,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},  # a process that forks has one thread
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(
        self, arguments: tuple[str, ...], folder: Path, environment: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end in `folder`; one that does not end is an AssertionError."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with tempfile.TemporaryDirectory() as name:
            stdout, stderr = Path(name, "stdout"), Path(name, "stderr")
            command = _Command(
                arguments=arguments,
                folder=str(folder),
                environment=environment,
                stdout=str(stdout),
                stderr=str(stderr),
            )
            self._process.stdin.write(json.dumps(dataclasses.asdict(command)) + "\n")
            self._process.stdin.flush()
            if not select.select([self._process.stdout], [], [], _SECONDS)[0]:
                self._process.kill()
            answer = self._process.stdout.readline()
            assert answer, f"{arguments} did not end"
            return subprocess.CompletedProcess(
                args=arguments,
                returncode=int(answer),
                stdout=stdout.read_text(encoding="utf-8"),
                stderr=stderr.read_text(encoding="utf-8"),
            )

    def close(self) -> None:
        """Return once the process has ended."""
        self._process.communicate()


def _serve() -> None:
    """Fork a process for each line; returns at the end of the input, and never in a fork."""
    from evaluator_svc.sandbox.limits import end_with_parent
    from generator_svc.llm.litellm_models import load_sdk

    for name in _IMPORTED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # a collection in a fork would copy every page
    for line in sys.stdin:
        command = _Command(**json.loads(line))
        if "optimize" in command.arguments:
            load_sdk()  # seconds of every search; the first one takes them for all
            gc.freeze()
        process = os.fork()
        if process == 0:
            end_with_parent()
            _become(command)
        _, status = os.waitpid(process, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _become(command: _Command) -> None:
    """Be the command; raises SystemExit, as it does at its end."""
    os.chdir(command.folder)
    os.environ.clear()
    os.environ.update(command.environment)
    tempfile.tempdir = None
    for target, path in enumerate((os.devnull, command.stdout, command.stderr)):
        opened = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.dup2(opened, target)
        os.close(opened)
    sys.path[0] = command.folder
    sys.argv[1:] = command.arguments
    sys.orig_argv[:] = [sys.executable, "-m", _MODULE, *command.arguments]
    runpy.run_module(_MODULE, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _serve()
