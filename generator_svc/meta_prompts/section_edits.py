"""Section edits: a model's reply becomes better guidance, or the reason why it does not.

Strict, since a guess at what was meant would be credited with what the text then brings. Knows
nothing of models and records.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from generator_svc.meta_prompts.sections import MAX_SECTION_CHARS, SECTION_NAMES, Sections
from generator_svc.prompting.secrets import Secrets

MAX_EDITS: Final = 8
"""More than so many are a new text, whose worth could be put down to nothing."""

_EDIT: Final = re.compile(
    r"^<{7} SEARCH(?P<section>[^\n]*)\n(?P<search>.*?)^={7}[ \t]*\n"
    r"(?P<text>.*?)^>{7} REPLACE[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
_MARKER: Final = re.compile(r"^(<{7} SEARCH|={7}[ \t]*$|>{7} REPLACE)", re.MULTILINE)
_FENCE: Final = re.compile(r"```|~~~")
_NUMBER: Final = re.compile(r"\d+")
_HEADING: Final = re.compile(r"^\s{0,3}#{1,6}\s", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class EditedSections:
    """What a reply makes of sections."""

    sections: Sections | None
    failure: str = ""
    """Why there are none; in words that the model can act on."""
    diagnosis: str = ""
    """What the reply says before its first edit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Edit:
    section: str
    search: str
    text: str


def edited(sections: Sections, reply: str, secrets: Sequence[Secrets]) -> EditedSections:
    """Return `sections` with the edits of `reply`, all of them or none.

    Args:
        sections: As the reply's writer saw them.
        reply: A diagnosis and edits.
        secrets: What no guidance may tell.
    """
    edits = _find(reply)
    if isinstance(edits, str):
        return EditedSections(sections=None, failure=edits)
    result = sections
    for edit in edits:
        text = _apply(getattr(result, edit.section), edit)
        if text is None:
            count = getattr(result, edit.section).count(edit.search)
            failure = f"this text is in section {edit.section} {count} times, not once: "
            return EditedSections(sections=None, failure=failure + _shown(edit.search))
        result = replace(result, **{edit.section: text})
    failure = _refusal(sections, result, secrets)
    if failure:
        return EditedSections(sections=None, failure=failure)
    return EditedSections(sections=result, diagnosis=reply[: reply.index("<<<<<<<")].strip())


def _find(reply: str) -> tuple[_Edit, ...] | str:
    """Return the edits of a reply, or what is wrong with them."""
    reply = reply.replace("\r\n", "\n")
    found = list(_EDIT.finditer(reply))
    if not found:
        return "there is no edit (<<<<<<< SEARCH section, =======, >>>>>>> REPLACE)"
    if len(_MARKER.findall(reply)) != 3 * len(found):
        return "the edits' marker lines do not match: each edit has three, in order"
    if len(found) > MAX_EDITS:
        return f"there are {len(found)} edits, at most {MAX_EDITS} are taken"
    edits = []
    for match in found:
        section = match["section"].strip(" \t[]`*:").lower()
        if section not in SECTION_NAMES:
            names = ", ".join(SECTION_NAMES)
            return f"behind SEARCH stands {section!r}, expected one of {names}"
        edits.append(_Edit(section=section, search=match["search"].strip("\n"), text=match["text"]))
    return tuple(edits)


def _apply(text: str, edit: _Edit) -> str | None:
    """Return `text` with `edit`; None when its place is not found, or found twice."""
    new = edit.text.strip("\n")
    if not edit.search:
        return f"{text}\n{new}".strip()
    if text.count(edit.search) != 1:
        return None
    lines = text.replace(edit.search, new).splitlines()
    return "\n".join(line.rstrip() for line in lines if line.strip())


def _refusal(old: Sections, new: Sections, secrets: Sequence[Secrets]) -> str:
    """Return why `new` cannot be shown to writers; empty when it can."""
    if new == old:
        return "the edits change nothing"
    for name in SECTION_NAMES:
        text = getattr(new, name)
        if not text:
            return f"section {name} would be empty"
        if len(text) > MAX_SECTION_CHARS:
            return f"section {name} would have {len(text)} characters, over {MAX_SECTION_CHARS}"
        if _FENCE.search(text):
            return f"section {name} would have a code fence"
        if _HEADING.search(text):
            return f"section {name} would have a heading"
        added = set(text.splitlines()) - set(getattr(old, name).splitlines())
        if any(_tells(line, hidden) for line in added for hidden in secrets):
            return f"section {name} would name a workload or a size of one task"
    return ""


def _tells(line: str, hidden: Secrets) -> bool:
    """Return whether `line` has a name or a size of a held-out workload.

    Powers of two are not meant: guidance speaks of vectors, groups and tiles, and what is held
    out to see whether borders are right is none.
    """
    sizes = {int(number) for number in _NUMBER.findall(line)} & hidden.sizes
    return hidden.without_names(line) != line or any(size & (size - 1) for size in sizes)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 200 else text[:200] + "…")
