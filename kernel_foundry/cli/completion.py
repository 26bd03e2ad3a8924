"""`kfoundry completion`: what a shell needs to complete commands, options and their values."""

from typing import Final

import click
from click.shell_completion import get_completion_class

from kernel_foundry.cli.output import print_exact

COMPLETE_VARIABLE: Final = "_KFOUNDRY_COMPLETE"
"""Set by the script that a shell reads: `kfoundry` then prints completions only."""


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(context: click.Context, shell: str) -> int:
    """Print a script by which SHELL completes `kfoundry` on Tab.

    \b
    kfoundry completion bash >> ~/.bashrc
    kfoundry completion zsh >> ~/.zshrc
    kfoundry completion fish > ~/.config/fish/completions/kfoundry.fish
    """  # noqa: D301  a backspace keeps click from joining the lines
    script = get_completion_class(shell)
    assert script is not None  # click knows these three
    root = context.find_root().command
    print_exact(script(root, {}, "kfoundry", COMPLETE_VARIABLE).source())
    return 0
