"""A digest of source code, for keys of what that code has computed."""

from pathlib import Path

from kernel_foundry.domain.digest import content_digest


def code_digest(*folders: Path) -> str:
    """Return a digest of all Python files below `folders`, with their places in these."""
    return content_digest(
        *(
            part
            for folder in folders
            for path in sorted(folder.rglob("*.py"))
            for part in (str(path.relative_to(folder)), path.read_bytes())
        )
    )
