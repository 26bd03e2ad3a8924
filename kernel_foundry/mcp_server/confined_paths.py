"""Paths that an agent names: none of them leaves the folder that the server was started on."""

from pathlib import Path

from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.printable import one_line
from kernel_foundry.sdk.task_file import sidecar_path

_LONGEST = 4096
"""Characters of a path; Linux allows no more."""


class ConfinedPaths:
    """The files below a folder.

    Args:
        root: The folder; symbolic links in it are followed once, here.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        """Without symbolic links."""

    def file(self, name: str) -> Path:
        """Return the file of that name, relative to the root, without symbolic links.

        Raises:
            InvalidArgumentError: it is outside the root, or no file.
        """
        path = self._below(name)
        if not path.is_file():
            raise InvalidArgumentError(
                f"{one_line(name)[:200]}: no such file below the root", field="path"
            )
        return path

    def new(self, name: str) -> Path:
        """Return where a file or folder of that name may be written, in a folder that is there.

        Raises:
            InvalidArgumentError: it is outside the root, or there already.
        """
        path = self._below(name)
        shown = one_line(name)[:200]
        if path.exists():
            raise InvalidArgumentError(
                f"{shown} is there already and is not replaced: choose another name", field="path"
            )
        if not path.parent.is_dir():
            raise InvalidArgumentError(f"{shown}: no such folder below the root", field="path")
        return path

    def task(self, name: str) -> Path:
        """Return a task file, whose sidecar is below the root as well.

        Raises:
            InvalidArgumentError: as `file`.
        """
        path = self.file(name)
        sidecar = sidecar_path(path)
        if sidecar.exists():
            self.file(str(sidecar))
        return path

    def _below(self, name: str) -> Path:
        """Return the path of that name, without symbolic links."""
        if len(name) > _LONGEST:
            raise InvalidArgumentError(f"a path of {len(name)} characters", field="path")
        shown = one_line(name)[:200]
        try:
            path = (self.root / name).resolve()
        except (OSError, ValueError, RuntimeError) as error:  # a NUL, or links in a circle
            raise InvalidArgumentError(f"{shown}: no path", field="path") from error
        if not path.is_relative_to(self.root):
            raise InvalidArgumentError(
                f"{shown} is outside the server's root: copy it below the folder that `kfoundry "
                "mcp --root` names",
                field="path",
            )
        return path
