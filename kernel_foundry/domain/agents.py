"""Names of coding agents as models, and which of them a process may start.

A model's name reaches a generator from clients, imported runs and plans; an agent's name is a
command. So a generator starts only agents that its owner named, on the command line or here.
"""

from collections.abc import Iterable, Mapping, MutableMapping
from typing import Final

AGENT_PREFIX: Final = "agent:"
"""Before the name of a known agent, or before a command."""

AGENTS_VARIABLE: Final = "KERNEL_FOUNDRY_AGENTS"
"""Environment variable with the agents that may be started, one a line, each with its prefix."""


def is_agent(model: str) -> bool:
    """Tell whether a model's bare name is that of an agent."""
    return model.startswith(AGENT_PREFIX)


def may_start(model: str, environ: Mapping[str, str]) -> bool:
    """Tell whether the owner of this process named the agent."""
    return model in environ.get(AGENTS_VARIABLE, "").splitlines()


def permit(entries: Iterable[str], environ: MutableMapping[str, str]) -> None:
    """Let this process start the agents among `entries`, with or without an expert's name."""
    named = environ.get(AGENTS_VARIABLE, "").splitlines()
    for entry in entries:
        expert, sign, command = entry.partition(f"={AGENT_PREFIX}")
        model = f"{AGENT_PREFIX}{command}" if sign and ":" not in expert else entry
        if is_agent(model) and model not in named:
            named.append(model)
    if named:
        environ[AGENTS_VARIABLE] = "\n".join(named)
