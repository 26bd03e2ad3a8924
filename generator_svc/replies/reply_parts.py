"""A reply's parts: fenced blocks and search/replace edits, wherever the model put them.

Takes time linear in the reply, whatever it holds. What makes a kernel or a plan of a block stands
in `extraction`.
"""

import re
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from kernel_foundry.languages import is_word
from kernel_foundry.plan.candidate_text import CPP_WORDS, PLAN_WORDS, WRAPPER_WORDS

MAX_MARKS: Final = 5_000
"""Fences, edit markers and reasoning tags that a reply may hold; a sensible one has dozens."""

_REASONING: Final = r"(?:think|thinking|thoughts?|reasoning|analysis|reflection|scratchpad)"
_MARK: Final = re.compile(
    rf"""
    ^(?P<indent>[ \t]*+)
    (?:(?!</?{_REASONING}>)</?[a-z][\w:-]*+>[ \t]*+)*+      # <answer>```sycl
    (?P<marks>`{{3,}}+|~{{3,}}+)(?P<info>[^`\n]*+)$
    | ^[ \t]*+(?:
        (?P<search><{{5,9}}[ \t]*+SEARCH\b(?P<label>[^\n]*+))
        | (?P<divider>={{5,9}})[ \t]*+
        | (?P<replace>>{{5,9}}[ \t]*+REPLACE\b[^\n]*+)
    )$
    | <(?P<slash>/?){_REASONING}>
    """,
    re.M | re.I | re.X,
)
_BARE_INFO: Final = re.compile(r"\s*(?:</[\w:-]+>\s*)*")
_GLUED_FENCE: Final = re.compile(rf"(</{_REASONING}>)[ \t]*+(?=`{{3}}|~{{3}})", re.I)
_CODE_WORDS: Final = CPP_WORDS | PLAN_WORDS


class UnusableReplyError(Exception):
    """No candidate can be made of a reply.

    Args:
        message: What is wrong and what to write instead, for the model that wrote it.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class FencedBlock:
    """A fenced block that holds neither blocks nor edits."""

    word: str
    """First word after the fence, lower case."""
    text: str
    offset: int
    """Where the content begins in the reply."""
    is_closed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenEdit:
    """One search/replace edit as it was written."""

    search: tuple[str, ...]
    replacement: tuple[str, ...]
    label: str = ""
    """The rest of the line after SEARCH."""
    fault: str = ""
    """The fault of its markers; empty if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyParts:
    """Everything of a reply outside its reasoning, in the order of the reply."""

    text: str
    blocks: tuple[FencedBlock, ...] = ()
    edits: tuple[WrittenEdit, ...] = ()
    ends_in_edits: bool = False
    """The block that holds the last edits is never closed."""
    ends_in_reasoning: bool = False

    def line(self, block: FencedBlock) -> int:
        """Return the 1-based line of the reply where the block's content begins."""
        return 1 + self.text.count("\n", 0, block.offset)


def read_parts(text: str) -> ReplyParts:
    """Take a reply apart; lines end in a line feed.

    Raises:
        UnusableReplyError: When it has more marks than any candidate needs.
    """
    text = _GLUED_FENCE.sub("\\1\n", text)
    marks = list(islice(_MARK.finditer(text), MAX_MARKS + 1))
    if len(marks) > MAX_MARKS:
        raise UnusableReplyError(
            "there are thousands of fences or edit markers: reply with one candidate and nothing "
            "else"
        )
    reader = _Reader(text=text)
    for mark in marks:
        reader.take(mark)
    return reader.finish()


@dataclass(slots=True, kw_only=True)
class _Fence:
    word: str
    indent: str
    marks: str
    content: int
    """Offset of the first line inside."""
    has_blocks: bool = False
    has_edits: bool = False


@dataclass(slots=True, kw_only=True)
class _OpenEdit:
    search: int
    """Offset of the first line to search for."""
    label: str
    divider: re.Match[str] | None = None
    fault: str = ""


@dataclass(slots=True, kw_only=True)
class _Reader:
    """Follows the marks of a reply; what is between two marks is never looked at."""

    text: str
    blocks: list[FencedBlock] = field(default_factory=list)
    edits: list[WrittenEdit] = field(default_factory=list)
    fences: list[_Fence] = field(default_factory=list)
    """The open ones, outermost first."""
    edit: _OpenEdit | None = None
    is_reasoning: bool = False

    def take(self, mark: re.Match[str]) -> None:
        if mark["slash"] is not None:
            self._reasoning_tag(mark)
        elif self.is_reasoning:
            return
        elif mark["search"]:
            self._begin_edit(mark)
        elif mark["divider"]:
            self._divide_edit(mark)
        elif mark["replace"]:
            self._end_edit(mark)
        elif self.edit is None:
            self._fence(mark)

    def finish(self) -> ReplyParts:
        if self.edit is not None:
            self._refuse_edit("has no >>>>>>> REPLACE line")
        ends_in_edits = any(fence.has_edits for fence in self.fences)
        for fence in self.fences:
            self._add_block(fence, len(self.text) + 1, is_closed=False)
        return ReplyParts(
            text=self.text,
            blocks=tuple(self.blocks),
            edits=tuple(self.edits),
            ends_in_edits=ends_in_edits,
            ends_in_reasoning=self.is_reasoning,
        )

    def _reasoning_tag(self, mark: re.Match[str]) -> None:
        before = self.text[self.text.rfind("\n", 0, mark.start()) + 1 : mark.start()].strip()
        is_outside = not self.fences and self.edit is None
        if not mark["slash"]:
            self.is_reasoning |= is_outside and not before
        elif self.is_reasoning:
            self.is_reasoning = False
        elif not before or (is_outside and self.text.startswith("\n", mark.end())):
            # Some servers cut off the opening tag: all that came before was reasoning.
            self.blocks.clear()
            self.edits.clear()
            self.fences.clear()
            self.edit = None

    def _begin_edit(self, mark: re.Match[str]) -> None:
        if self.edit is not None:
            self._refuse_edit("has no >>>>>>> REPLACE line")
        self.edit = _OpenEdit(search=mark.end() + 1, label=mark["label"].strip())
        if self.fences:
            self.fences[-1].has_edits = True

    def _divide_edit(self, mark: re.Match[str]) -> None:
        if self.edit is None:
            return  # an underlined heading
        if self.edit.divider is not None:
            self.edit.fault = "has two ======= lines"
        self.edit.divider = mark

    def _end_edit(self, mark: re.Match[str]) -> None:
        if self.edit is None:
            self._refuse_edit("has no <<<<<<< SEARCH line")
            return
        divider = self.edit.divider
        if divider is None:
            self._refuse_edit("has no ======= line")
            return
        self.edits.append(
            WrittenEdit(
                search=_lines(self.text, self.edit.search, divider.start()),
                replacement=_lines(self.text, divider.end() + 1, mark.start()),
                label=self.edit.label,
                fault=self.edit.fault,
            )
        )
        self.edit = None

    def _refuse_edit(self, fault: str) -> None:
        label = self.edit.label if self.edit is not None else ""
        self.edits.append(WrittenEdit(search=(), replacement=(), label=label, fault=fault))
        self.edit = None

    def _fence(self, mark: re.Match[str]) -> None:
        info = mark["info"]
        is_bare = bool(_BARE_INFO.fullmatch(info))
        words = [] if is_bare else info.lower().split(maxsplit=1)
        opened = _Fence(
            word=words[0].strip("{}.") if words else "",
            indent=mark["indent"],
            marks=mark["marks"],
            content=mark.end() + 1,
        )
        if not self.fences:
            self.fences.append(opened)
            return
        inner = self.fences[-1]
        if is_bare and _can_close(inner, opened):
            self._close(mark.start())
        elif inner.word in WRAPPER_WORDS and (not is_bare or len(opened.marks) < len(inner.marks)):
            inner.has_blocks = True
            self.fences.append(opened)
        elif _is_code(opened.word) and _can_close(inner, opened):
            # The closing fence was forgotten; no code holds a line like ```python.
            self._close(mark.start())
            self.fences.append(opened)

    def _close(self, end: int) -> None:
        self._add_block(self.fences.pop(), end, is_closed=True)

    def _add_block(self, fence: _Fence, end: int, *, is_closed: bool) -> None:
        if fence.has_blocks or fence.has_edits:
            return
        lines = _lines(self.text, fence.content, end)
        if fence.indent:
            lines = tuple([_less_indented(line, fence.indent) for line in lines])
        self.blocks.append(
            FencedBlock(
                word=fence.word,
                text="\n".join(lines),
                offset=fence.content,
                is_closed=is_closed,
            )
        )


def _can_close(opening: _Fence, fence: _Fence) -> bool:
    return fence.marks.startswith(opening.marks) and _columns(fence.indent) <= 3 + _columns(
        opening.indent
    )


def _columns(indent: str) -> int:
    return len(indent.expandtabs(4))


def _lines(text: str, start: int, end: int) -> tuple[str, ...]:
    """Return the whole lines from `start` up to the line that begins at `end`."""
    return tuple(text[start : end - 1].split("\n")) if start < end else ()


def _less_indented(line: str, indent: str) -> str:
    return line[len(indent) :] if line.startswith(indent) else line.lstrip(" \t")


def _is_code(word: str) -> bool:
    return word in _CODE_WORDS or is_word(word)
