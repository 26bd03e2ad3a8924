"""The definition of a kernel language, for parsers, plans and prompts."""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_BLOCKS: Final = (
    *("rows", "product", "mma_product", "attention", "convolution", "linear_example"),
)

Extent = tuple[int, int, int]
"""Sizes in x, y and z, x fastest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelLanguage:
    """A language that candidates are written in."""

    name: str
    title: str
    """Its name in prompts and messages, such as "CUDA C++"."""
    words: tuple[str, ...]
    """Words that may follow the fence of a block, in lower case; our own texts use `name`."""
    mark: re.Pattern[str]
    """Found in text of this language, and in that of no other."""
    texts: Path
    """Folder of its texts: `example.md` (a worked example), `blocks/` (functions to include),
    `experts/`, `guidance/` and `phrases.yaml` for prompts, `hints.yaml` for directions. A missing
    text is left out of prompts."""
    source_file: str
    """The name of its source in diagnostics."""
    needless_headers: str
    """Pattern of headers whose contents are built in: their includes are removed."""

    kernel_mark: re.Pattern[str]
    """Found in the declaration of a kernel. Its group, where it has one, is the number of the
    kernel's dimensions, or a name that stands for it."""
    kernel_dimensions: int | None
    """Dimensions of every kernel; None if each declaration says it."""
    kernel_form: str
    """The text between `extern "C"` and a kernel's name."""

    max_grid: Extent | None = None
    """In work-groups; None: any."""
    max_block: Extent | None = None
    """In work-items; None: as many as the device says."""
    max_items: int | None = None
    """Work-items of a launch; None: any number."""
    without_shared_bytes: str = ""
    """The alternative to giving a launch's shared bytes; empty: they can be given."""
    without_cooperative: str = ""
    """The alternative to a cooperative launch; empty: there are such launches."""
    without_local: str = ""
    """The alternative to `local(...)`; empty: kernels take local accessors."""

    def text(self, name: str) -> str:
        """Return a text of its folder without blanks around it; "" where there is none."""
        path = self.texts / name
        return path.read_text("utf-8").strip() if path.is_file() else ""

    def blocks(self, *names: str) -> str:
        """Return the texts on tested functions to include; "" where it has none.

        `names` are files of `blocks/` without ending; without any the text has all of them.
        """
        texts = (self.text(f"blocks/{name}.md") for name in names or _BLOCKS)
        return "\n\n".join(text for text in texts if text)

    def phrases(self) -> Mapping[str, str]:
        """Parts of sentences that prompts leave to the language, by name; "" for others."""
        import yaml  # not for processes of a candidate, which start often and print no prompts

        return defaultdict(str, yaml.safe_load(self.text("phrases.yaml")) or {})
