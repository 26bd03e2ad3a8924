"""The `kfoundry` command: its sub-commands, loaded when called, and its exit codes."""

import gc
import importlib
import os
import signal
import sys

import click

from kernel_foundry.cli.completion import COMPLETE_VARIABLE
from kernel_foundry.cli.name import as_called
from kernel_foundry.cli.output import print_text
from kernel_foundry.closest_name import did_you_mean
from kernel_foundry.errors import (
    BackendUnavailableError,
    EliteNotFoundError,
    IsolationUnavailableError,
    KernelFoundryError,
    LlmConfigurationError,
    PackageMissingError,
    RunNotFoundError,
    StatusCode,
    TaskBeyondModelsError,
)
from kernel_foundry.printable import print_safely

EXIT_NOTHING_CORRECT = 1
EXIT_BAD_INPUT = 2
EXIT_MISSING_PART = 3
EXIT_NOT_CONFIRMED = 4

_COMMANDS = {
    "optimize": "Search for the fastest correct kernel of a task.",
    "capture": "Run your program once; write tasks for its slowest modules.",
    "import": "Turn other projects' tasks into task files.",
    "submit": "Run a command in the background, independent of this terminal.",
    "jobs": "List, watch, cancel and delete submitted jobs.",
    "admit": "Check a task before any money is spent on it.",
    "evaluate": "Judge one candidate.",
    "verify": "Check an evidence record, and judge its candidate again.",
    "sweep": "Try every configuration of a candidate.",
    "devices": "Show devices, what is missing and why.",
    "selftest": "Test device, clock and sandbox; with --cheats also the verdicts.",
    "serve": "Run services for other machines and tools.",
    "health": "Check whether a service is ready, for scripts and probes.",
    "fleet": "Run evaluators behind Ray Serve, on one machine or many.",
    "token": "Create, list and revoke access tokens for services.",
    "mcp": "Serve the evaluator as a tool for a coding agent.",
    "skills": "Install skills for coding agents.",
    "ui": "Show runs live in a browser.",
    "suite": "Optimise many tasks as one job, and report on them.",
    "export": "Write a winner as a file for your own program.",
    "runs": "List, show, watch, steer, report, copy, replay, rename, delete runs.",
    "clean": "Remove caches and leftovers; --dry-run lists all files.",
    "experience": "List, search, add and copy lessons from earlier candidates.",
    "bench": "Measure the system itself.",
    "completion": "Print a completion script for your shell.",
}
"""Command to its short help; the module of the same name is imported when it runs."""
_OTHER_WORDS = {"check": "admit", "report": "runs report", "run": "optimize", "list": "runs list"}
"""Words that users try for a command, and the command that they mean."""
_MODULES = {"import": "import_tasks"}
"""Modules that cannot have their command's name."""

_BAD_INPUT = (
    StatusCode.INVALID_ARGUMENT,
    StatusCode.NOT_FOUND,
    StatusCode.ALREADY_EXISTS,
)
_MISSING_PART = (
    BackendUnavailableError,
    IsolationUnavailableError,
    LlmConfigurationError,
    PackageMissingError,
    TaskBeyondModelsError,
)


class _LazyGroup(click.Group):
    """Imports a command's module when it is needed: `--help` stays instant."""

    def list_commands(self, _context: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, _context: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        module = importlib.import_module(f"kernel_foundry.cli.{_MODULES.get(name, name)}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command; an unknown name is refused with the most similar one."""
        name = args[0]
        if name not in _COMMANDS and not name.startswith("-"):
            other = _OTHER_WORDS.get(name)
            meant = f": did you mean {other}?" if other else did_you_mean(name, _COMMANDS)
            context.fail(f"No such command {name!r}{meant}")
        return super().resolve_command(context, args)

    def format_commands(self, _context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="kernel-foundry", prog_name="kfoundry")
def cli() -> None:
    """Turn a slow PyTorch operator into the fastest correct kernel for your hardware.

    \b
    Start here:
      kfoundry devices              what this machine can do
      kfoundry optimize my_op.py    search for a kernel of its class Model
      kfoundry runs best            the winner

    Exit codes: 0 success; 1 nothing correct was found, or a check failed; 2 bad input; 3 a required
    part is missing; 4 `verify` could not confirm the times; 130 interrupted.
    """  # noqa: D301  a backspace keeps click from joining the lines


def main() -> None:
    """Run the command line and exit; SIGTERM acts as Ctrl-C."""
    if not os.environ.get(COMPLETE_VARIABLE):  # click completes, in bytes, and runs nothing then
        print_safely()
    # A shell that starts a job in the background may have it ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        code = cli.main(standalone_mode=False, complete_var=COMPLETE_VARIABLE)
    except click.ClickException as error:
        error.show()
        code = EXIT_BAD_INPUT
    except (click.Abort, KeyboardInterrupt):
        print_text("interrupted", err=True)
        code = 130
    except KernelFoundryError as error:
        print_text(f"error: {error}{_hint(error)}", err=True)
        code = exit_code(error)
    # A garbage collection at exit would spend seconds on the objects of a provider's SDK.
    gc.freeze()
    sys.exit(code or 0)


def _hint(error: KernelFoundryError) -> str:
    run = error.metadata.get("run", "")
    if isinstance(error, RunNotFoundError):
        words = "runs list` shows them" if run else "optimize TASK` makes one"
        return f": `{as_called(words)}"
    if isinstance(error, EliteNotFoundError) and run:
        return f"; `{as_called(f'optimize --resume --run {run}')}` continues it"
    return ""


def exit_code(error: KernelFoundryError) -> int:
    """Return 2 for bad input and 3 for a missing part or a service that failed."""
    if isinstance(error, _MISSING_PART) or error.code not in (
        *_BAD_INPUT,
        StatusCode.FAILED_PRECONDITION,
    ):
        return EXIT_MISSING_PART
    return EXIT_BAD_INPUT
