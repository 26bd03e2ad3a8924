"""The short reference of the launch-plan language, as it goes into prompts.

The text is package data (`reference_short.md`); lines that start with a language's name are kept
for that language only. The prompts around it are in `generator_svc/prompting`.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

from kernel_foundry.languages import language_named, languages


@cache
def short_reference(language: str) -> str:
    """Return the reference for the language of that name, about 20 lines of Markdown.

    Raises:
        ValueError: there is no such language.
    """
    language_named(language)
    names = [record.name for record in languages()]
    text = resources.files(__package__).joinpath("reference_short.md").read_text("utf-8")
    kept = []
    for line in text.splitlines():
        owner = next((name for name in names if line.startswith(f"{name}: ")), None)
        if owner is None:
            kept.append(line)
        elif owner == language:
            kept.append(line.removeprefix(f"{owner}: "))
    return "\n".join(kept) + "\n"
