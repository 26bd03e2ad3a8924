"""Section edits: turns a model's reply into edited guidance, or into the reason why it cannot.

Nothing is guessed: the gains would be credited to a text that the model did not mean.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from generator_svc.held_out import HeldOut
from generator_svc.markdown import clip
from generator_svc.meta_prompts.sections import MAX_SECTION_CHARS, SECTION_NAMES, Sections
from generator_svc.replies.reply_parts import UnusableReplyError, WrittenEdit, read_parts

MAX_EDITS: Final = 8
"""Most edits of a reply: with more it is a rewrite, whose effect cannot be attributed."""

MAX_DIAGNOSIS_CHARS: Final = 1_000

_FENCE: Final = re.compile(r"```|~~~")
_NUMBER: Final = re.compile(r"\d+")
_HEADING: Final = re.compile(
    r"^\s{0,3}(?:#{1,6}\s|=++[ \t]*+$|-{2,}+[ \t]*+$|<h[1-6]\b)", re.MULTILINE | re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EditedSections:
    """The sections after a reply's edits."""

    sections: Sections | None
    """None if the reply cannot be used."""
    failure: str = ""
    """Why it cannot be used, in words that the model can act on."""
    diagnosis: str = ""
    """The reply's text before its first edit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Edit:
    section: str
    search: str
    text: str


def edited(sections: Sections, reply: str, held_out: Sequence[HeldOut]) -> EditedSections:
    """Return `sections` with the edits of `reply`, all of them or none.

    Args:
        sections: The sections that the model saw.
        reply: A diagnosis and edits.
        held_out: Names and sizes that guidance must not reveal.
    """
    reply = reply.replace("\r\n", "\n")
    result = sections
    try:
        for edit in _find(reply):
            result = _apply(result, edit)
        _require_showable(sections, result, held_out)
    except UnusableReplyError as error:
        return EditedSections(sections=None, failure=error.message)
    return EditedSections(sections=result, diagnosis=_diagnosis(reply))


def _diagnosis(reply: str) -> str:
    """Return the text before the first edit, without reasoning in tags."""
    said = reply.rpartition("</think>")[2].partition("<<<<<")[0]
    return clip(said.strip().removesuffix("```").strip(), MAX_DIAGNOSIS_CHARS)


def _find(reply: str) -> tuple[_Edit, ...]:
    """Return the edits of a reply, without those in its reasoning."""
    found = read_parts(reply).edits
    if not found:
        raise UnusableReplyError(
            "there is no edit (<<<<<<< SEARCH section, =======, >>>>>>> REPLACE)"
        )
    if len(found) > MAX_EDITS:
        raise UnusableReplyError(f"there are {len(found)} edits, at most {MAX_EDITS} are taken")
    return tuple([_edit(written, number) for number, written in enumerate(found, start=1)])


def _edit(written: WrittenEdit, number: int) -> _Edit:
    if written.fault:
        raise UnusableReplyError(f"edit {number} {written.fault}")
    section = written.label.strip(" \t[]`*:").lower()
    if section not in SECTION_NAMES:
        names = ", ".join(SECTION_NAMES)
        raise UnusableReplyError(f"after SEARCH: got {section!r}, expected one of {names}")
    search, text = ("\n".join(lines).strip("\n") for lines in (written.search, written.replacement))
    return _Edit(section=section, search=search, text=text)


def _apply(sections: Sections, edit: _Edit) -> Sections:
    """Return `sections` with `edit`; blank lines are dropped."""
    old = getattr(sections, edit.section)
    if not edit.search:
        text = f"{old}\n{edit.text}"
    elif (count := old.count(edit.search)) != 1:
        raise UnusableReplyError(
            f"this text is in section {edit.section} {count} times, not once: {_shown(edit.search)}"
        )
    else:
        text = old.replace(edit.search, edit.text)
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return replace(sections, **{edit.section: "\n".join(lines)})


def _require_showable(old: Sections, new: Sections, held_out: Sequence[HeldOut]) -> None:
    """Refuse sections that cannot be shown in prompts."""
    if new == old:
        raise UnusableReplyError("the edits change nothing")
    for name in SECTION_NAMES:
        text = getattr(new, name)
        added = set(text.splitlines()) - set(getattr(old, name).splitlines())
        fault = _fault(text)
        if not fault and any(_tells(line, hidden) for line in added for hidden in held_out):
            fault = "would name a workload or a size of one task"
        if fault:
            raise UnusableReplyError(f"section {name} {fault}")


def _fault(text: str) -> str:
    """Return the fault of a section, whatever it was before; empty if it has none."""
    if not text:
        return "would be empty"
    if len(text) > MAX_SECTION_CHARS:
        return f"would have {len(text)} characters, over {MAX_SECTION_CHARS}"
    if _FENCE.search(text):
        return "would have a code fence"
    return "would have a heading" if _HEADING.search(text) else ""


def _tells(line: str, hidden: HeldOut) -> bool:
    """Return whether `line` has a name or a size of a held-out workload.

    Powers of two do not count: guidance names them for vectors, groups and tiles, and held-out
    sizes that test borders are other numbers.
    """
    sizes = {int(number) for number in _NUMBER.findall(line)} & hidden.sizes
    return hidden.without_names(line) != line or any(size & (size - 1) for size in sizes)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 200 else text[:200] + "…")
