"""Command lines of coding agents, and the little of our environment that they are given.

`claude`: code.claude.com/docs/en/cli-reference and /headless: `-p`, `--permission-mode`,
`--allowedTools`. `codex`: developers.openai.com/codex/noninteractive: `codex exec`, `--sandbox`,
`--skip-git-repo-check` (the scratch folder is no repository).
"""

import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kernel_foundry.domain.agents import AGENT_PREFIX, AGENTS_VARIABLE, may_start
from kernel_foundry.errors import LlmConfigurationError

PROMPT_FILE: Final = "PROMPT.md"
ANSWER_FILE: Final = "candidate.md"

ENVIRONMENT_VARIABLE: Final = "KERNEL_FOUNDRY_AGENT_ENVIRONMENT"
"""Environment variable with names of further variables that agents see, separated by spaces."""

_INSTRUCTION: Final = (
    f"Read {PROMPT_FILE} in this folder and do what it asks. Write the whole answer, and nothing "
    f"else, to {ANSWER_FILE} in this folder."
)

_EVERY_AGENT_SEES: Final = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _KnownAgent:
    command: tuple[str, ...]
    variables: tuple[str, ...]
    """Its keys and settings."""
    install: str


KNOWN_AGENTS: Final = {
    "claude": _KnownAgent(
        # Files only: a shell would run with all that the user may do.
        command=(
            *("claude", "-p", _INSTRUCTION),
            *("--permission-mode", "acceptEdits", "--allowedTools", "Read,Write,Edit"),
        ),
        variables=(
            *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"),
            *("ANTHROPIC_MODEL", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR"),
        ),
        install="npm install -g @anthropic-ai/claude-code",
    ),
    "codex": _KnownAgent(
        # Its own sandbox: it writes in the folder and has no network.
        command=(
            *("codex", "exec", "--sandbox", "workspace-write"),
            *("--skip-git-repo-check", _INSTRUCTION),
        ),
        variables=("OPENAI_API_KEY", "CODEX_API_KEY", "OPENAI_BASE_URL", "CODEX_HOME"),
        install="npm install -g @openai/codex",
    ),
}


def agent_command(model: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the command line of `agent:NAME` or `agent:COMMAND…`.

    The program, and arguments that are files seen from here, become absolute paths, since the
    agent starts in another folder.

    Raises:
        LlmConfigurationError: this process may not start it, or it is not installed.
    """
    if not may_start(model, environ):
        raise LlmConfigurationError(
            f"model {model!r} starts a program: name it with --model on the command line that runs "
            f"the generator, or as a line of {AGENTS_VARIABLE} where the generator is served",
            model=model,
            variable=AGENTS_VARIABLE,
        )
    name = model.removeprefix(AGENT_PREFIX)
    known = KNOWN_AGENTS.get(name)
    try:
        command = known.command if known else tuple(shlex.split(name))
    except ValueError as error:
        raise LlmConfigurationError(f"model {model!r}: {error}", model=model) from error
    program = shutil.which(command[0], path=environ.get("PATH")) if command else None
    if program is None:
        hint = (
            f"install it ({known.install})"
            if known
            else f"expected {AGENT_PREFIX}{' or '.join(KNOWN_AGENTS)}, or a command that is on PATH"
        )
        raise LlmConfigurationError(
            f"model {model!r}: there is no program {command[0] if command else ''!r}: {hint}",
            model=model,
        )
    rest = (_from_anywhere(part) for part in command[1:])
    return (str(Path(program).absolute()), *(command[1:] if known else rest))


def _from_anywhere(part: str) -> str:
    # Not `resolve`: the Python of a virtual environment is a link.
    return str(Path(part).absolute()) if Path(part).is_file() else part


def agent_environment(model: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of `environ` for the agent: its own keys, and no other provider's."""
    known = KNOWN_AGENTS.get(model.removeprefix(AGENT_PREFIX))
    names = (
        *_EVERY_AGENT_SEES,
        *(known.variables if known else ()),
        *environ.get(ENVIRONMENT_VARIABLE, "").split(),
    )
    return {name: environ[name] for name in names if name in environ}
