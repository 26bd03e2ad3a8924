"""The short reference of the launch-plan language, as it goes into prompts.

The text is package data (`reference_short.md`); lines that start with a language's name are kept
for that language only. The prompts around it are in `generator_svc/prompting`.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

_LANGUAGES = ("sycl", "cuda")


@cache
def short_reference(language: str) -> str:
    """Return the reference for "sycl" or "cuda", about 20 lines of Markdown."""
    if language not in _LANGUAGES:
        raise ValueError(f"language {language!r} is neither sycl nor cuda")
    text = resources.files(__package__).joinpath("reference_short.md").read_text("utf-8")
    kept = []
    for line in text.splitlines():
        owner = next((name for name in _LANGUAGES if line.startswith(f"{name}: ")), None)
        if owner is None:
            kept.append(line)
        elif owner == language:
            kept.append(line.removeprefix(f"{owner}: "))
    return "\n".join(kept) + "\n"
