"""Writes the skills of this package to where coding agents look for them."""

import stat
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final

from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.whole_file import replace_file

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


def install_skills(
    folder: Path, *, replaces: bool = False, project: Path | None = None
) -> tuple[Path, ...]:
    """Write every skill below `folder` and return the files; what is the same stays as it is.

    Args:
        folder: Where an agent looks for skills; made where it is not there.
        replaces: Whether a file of another text, or a link, is replaced.
        project: A folder that somebody else may have made, which links may not lead out of.

    Raises:
        InvalidArgumentError: one is there with another text, or a link leads out of the project,
            and nothing was written; or it cannot be written.
    """
    texts = {folder / name / SKILL_FILE: text for name, text in skills().items()}
    try:
        for path in texts:
            if project is not None and not _is_below(path.parent, project):
                raise InvalidArgumentError(
                    f"{path.parent} is behind a link that leads out of {project}: name the folder "
                    "with `--to` if you mean it",
                    field="to",
                )
        others = [path for path, text in texts.items() if _differs(path, text)]
        if others and not replaces:
            raise InvalidArgumentError(
                f"{others[0]} is there with another text, of an older version or of your own: "
                "`--replace` writes over it",
                field="to",
            )
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            if _differs(path, text) is not False:
                replace_file(path, text)
    except OSError as error:
        raise InvalidArgumentError(
            f"{error.filename} cannot be written: {error.strerror}", field="to"
        ) from error
    return tuple(texts)


def _is_below(folder: Path, project: Path) -> bool:
    return folder.resolve().is_relative_to(project.resolve())


def _differs(path: Path, text: str) -> bool | None:
    """Whether something else is there; None where nothing is. A link or a pipe is not read."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    whole = text.encode()
    is_alike = stat.S_ISREG(status.st_mode) and status.st_size == len(whole)
    return not is_alike or path.read_bytes() != whole
