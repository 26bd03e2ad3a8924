"""`kfoundry skills`: install skills for coding agents."""

from pathlib import Path
from typing import Final

import click

from kernel_foundry.cli.output import print_text
from kernel_foundry.sdk.skills.install import AGENTS, install_skills

_USUAL: Final = ("claude", "codex")
"""Most agents look where one of the two does."""


@click.group()
def command() -> None:
    """Install skills for coding agents: write a task, read a verdict, make a kernel faster."""


@command.command()
@click.option(
    "--agent",
    "agents",
    multiple=True,
    type=click.Choice(list(AGENTS)),
    help=f"Whose folder to write to; repeatable.  [default: {' and '.join(_USUAL)}, where most "
    "agents look]",
)
@click.option("--user", is_flag=True, help="For all projects of yours, not for this folder alone.")
@click.option(
    "--to",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of skills of another agent, in place of --agent.",
)
@click.option("--replace", is_flag=True, help="Write over skills of these names.")
def install(agents: tuple[str, ...], user: bool, to: Path | None, replace: bool) -> int:
    """Write a folder with a SKILL.md for each skill to where coding agents look for them.

    The skills go through the tools of `kfoundry mcp`, which the agent has to have; docs/agents.md
    has the lines for its configuration. Install them again after an update, with --replace.

    \b
    kfoundry skills install
    kfoundry skills install --agent gemini --user
    kfoundry skills install --to ~/my-agent/skills
    """  # noqa: D301  a backspace keeps click from joining the lines
    if to is not None and (agents or user):
        raise click.UsageError("--to names the folder: leave --agent and --user out")
    named = [AGENTS[agent] for agent in agents or _USUAL]
    folders = [Path.home() / one.user if user else Path(one.project) for one in named]
    for folder in [to] if to is not None else folders:
        project = None if user or to is not None else Path.cwd()
        for path in install_skills(folder, replaces=replace, project=project):
            print_text(path)
    return 0
