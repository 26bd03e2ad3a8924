"""Help of every command, and completion in shells."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from kernel_foundry.cli.main import cli
from tests.cli.conftest import environment_of, run_kfoundry


def _commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner is not None
        yield from _commands(inner, f"{path} {name}")


_COMMANDS = dict(_commands(cli, "kfoundry"))


@pytest.mark.parametrize("path", _COMMANDS)
def test_every_command_has_examples_that_it_takes(path: str) -> None:
    command = _COMMANDS[path]
    help_text = re.sub(r"\\\n\s*", "", command.help or "")
    lines = [line.strip() for line in help_text.splitlines()]
    examples = [line for line in lines if re.match(rf"{path}(?!\S)", line)]
    assert examples, f"{path}: no example in its help"
    for example in examples:
        # What follows is another program, a file, or what the example is for.
        words = re.split(r"  +| [|>]{1,2} ", example)[0].removeprefix(path)
        context = click.Context(command, **command.context_settings)
        values, _, _ = command.make_parser(context).parse_args(shlex.split(words))
        for parameter in command.params:
            value = values.get(parameter.name or "")
            is_checked = isinstance(
                parameter.type, click.Choice | click.IntRange | click.FloatRange
            )
            if is_checked and isinstance(value, str | list | tuple):
                parameter.type_cast_value(context, value)
            if parameter.required and not parameter.envvar:
                assert value, f"{example}: no {parameter.name}"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script_calls_the_command(folder: Path, shell: str) -> None:
    result = run_kfoundry(folder, "completion", shell)
    assert result.returncode == 0, result.stderr
    assert f"_KFOUNDRY_COMPLETE={shell}_complete" in result.stdout


def test_completion_names_commands(folder: Path) -> None:
    asked = {"_KFOUNDRY_COMPLETE": "bash_complete", "COMP_WORDS": "kfoundry runs ca"}
    result = subprocess.run(
        [sys.executable, "-m", "kernel_foundry.cli"],
        env={**environment_of(folder), **asked, "COMP_CWORD": "2"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.stdout == "plain,candidate\n", result.stderr
