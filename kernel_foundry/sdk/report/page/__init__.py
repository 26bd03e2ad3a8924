"""The files of the page: plain HTML, CSS and ES modules, with no build step."""

from dataclasses import dataclass
from importlib import resources
from typing import Final

_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFile:
    """One file of the page."""

    content_type: str
    text: str


def page_files() -> dict[str, PageFile]:
    """Return the files by name."""
    folder = resources.files(__name__)
    return {
        file.name: PageFile(content_type=_TYPES[suffix], text=file.read_text(encoding="utf-8"))
        for file in folder.iterdir()
        for suffix in _TYPES
        if file.name.endswith(suffix)
    }
