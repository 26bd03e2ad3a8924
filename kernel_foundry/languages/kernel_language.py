"""What a kernel language is to those who read its text or bind a plan to it."""

import re
from dataclasses import dataclass

Extent = tuple[int, int, int]
"""Sizes in x, y and z, x fastest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelLanguage:
    """A language that candidates are written in."""

    name: str
    title: str
    """Its name in prompts and messages, such as "CUDA C++"."""
    words: tuple[str, ...]
    """What may stand behind the fence of a block in it, lower case; the first is written."""
    mark: re.Pattern[str]
    """Found in text of this language, and in that of no other."""
    source_file: str
    """The name of its source in diagnostics."""
    needless_headers: str
    """Pattern of headers whose contents are there without them: their includes are left out."""

    kernel_mark: re.Pattern[str]
    """Found in the declaration of a kernel. Its group, where it has one, is the number of the
    kernel's dimensions, or a name that stands for it."""
    kernel_dimensions: int | None
    """Of every kernel; None where each declaration says it."""
    kernel_form: str
    """What is written between `extern "C"` and a kernel's name."""

    max_grid: Extent | None = None
    """In work-groups; None: any."""
    max_block: Extent | None = None
    """In work-items; None: as many as the device says."""
    max_items: int | None = None
    """Work-items of a launch; None: any number."""
    without_shared_bytes: str = ""
    """What to do instead of giving a launch's shared bytes; empty: they can be given."""
    without_cooperative: str = ""
    """What to do instead of a cooperative launch; empty: there are such launches."""
    without_local: str = ""
    """What to do instead of `local(...)`; empty: kernels take local accessors."""
