"""Writes the skills of this package to where coding agents look for them."""

from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final

from kernel_foundry.errors import InvalidArgumentError

SKILL_FILE: Final = "SKILL.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFolders:
    """Where a coding agent looks for skills."""

    project: str
    """Below the folder that it works in."""
    user: str
    """Below the user's home."""


AGENTS: Final[dict[str, AgentFolders]] = {
    "claude": AgentFolders(project=".claude/skills", user=".claude/skills"),
    "codex": AgentFolders(project=".agents/skills", user=".agents/skills"),
    "copilot": AgentFolders(project=".github/skills", user=".copilot/skills"),
    "cursor": AgentFolders(project=".cursor/skills", user=".cursor/skills"),
    "gemini": AgentFolders(project=".gemini/skills", user=".gemini/skills"),
    "opencode": AgentFolders(project=".opencode/skills", user=".config/opencode/skills"),
}
"""By name. Gemini CLI and OpenCode read `.agents/skills` as well."""


def skills() -> dict[str, str]:
    """Return the text of each skill by its name."""
    folders = (
        f for f in resources.files(__package__).iterdir() if f.joinpath(SKILL_FILE).is_file()
    )
    return {
        folder.name: folder.joinpath(SKILL_FILE).read_text("utf-8")
        for folder in sorted(folders, key=lambda folder: folder.name)
    }


def install_skills(folder: Path, *, replaces: bool = False) -> tuple[Path, ...]:
    """Write every skill below `folder` and return the files; what is the same stays as it is.

    Args:
        folder: Where an agent looks for skills; made where it is not there.
        replaces: Whether a file of another text is written over.

    Raises:
        InvalidArgumentError: one is there with another text, and nothing was written; or it
            cannot be written.
    """
    texts = {folder / name / SKILL_FILE: text for name, text in skills().items()}
    try:
        others = [path for path, text in texts.items() if _differs(path, text)]
        if others and not replaces:
            raise InvalidArgumentError(
                f"{others[0]} is there with another text, of an older version or of your own: "
                "`--replace` writes over it",
                field="to",
            )
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidArgumentError(
            f"{error.filename} cannot be written: {error.strerror}", field="to"
        ) from error
    return tuple(texts)


def _differs(path: Path, text: str) -> bool:
    return path.exists() and path.read_bytes() != text.encode()
