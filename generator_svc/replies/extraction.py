"""A reply's text → a candidate's source, or why there is none.

Tolerant of how a model wraps its answer, strict about what it is: one block of device code and one
plan, both complete, written out or made of the parent by edits. A user's file is cut by
`kernel_foundry.plan.split` instead, which knows none of this tolerance.
"""

import re
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from generator_svc.replies.edits import apply_edits
from generator_svc.replies.json_reply import markdown_of
from generator_svc.replies.pieces import Piece, pieces_of, require_all_kernels
from generator_svc.replies.plain_text import plain_text
from generator_svc.replies.reply_parts import ReplyParts, UnusableReplyError, read_parts
from kernel_foundry.domain.candidate import LONGEST_CANDIDATE, KernelSource
from kernel_foundry.domain.language import Language
from kernel_foundry.plan.candidate_text import ExtractionError, render, split

_DIFF_MARK: Final = re.compile(r"^@@ -\d", re.M)


class ReplyForm(StrEnum):
    """How a reply puts its candidate."""

    WHOLE = "whole"
    """As blocks; the one that it leaves out is the parent's."""
    EDITS = "edits"
    """As changes of the parent."""
    NONE = "none"
    """Not at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedReply:
    """The candidate that a reply proposes."""

    source: KernelSource | None
    failure: str = ""
    """Why there is no source, for the model that wrote the reply; empty when there is one."""
    form: ReplyForm


def extract(
    text: str, *, language: Language, parent: KernelSource | None, is_cut: bool = False
) -> ExtractedReply:
    """Take a candidate's source out of a reply; never raises, whatever the text.

    Args:
        text: The reply.
        language: What the device code must be in.
        parent: What edits apply to, and whose block stays when the reply writes only one; None
            when the reply must be a whole candidate.
        is_cut: The reply ended at its output limit. Both blocks may be there all the same, but
            the other block or further edits may be missing.
    """
    form = ReplyForm.NONE
    try:
        parts = _parts(text)
        form = ReplyForm.EDITS if parts.edits else ReplyForm.NONE
        pieces = pieces_of(parts, language)
        if any(piece.is_whole for piece in pieces) and not parts.edits:
            form = ReplyForm.WHOLE
        reading = _Reading(parts=parts, pieces=pieces, language=language, parent=parent)
        source = reading.whole()
        if source is not None:
            form = ReplyForm.WHOLE
        else:
            source = reading.child(is_cut=is_cut)
        _require_readable(source)
        return ExtractedReply(source=source, form=form)
    except UnusableReplyError as error:
        cut = "the reply was cut off at its output limit; " if is_cut else ""
        return ExtractedReply(source=None, failure=cut + error.message, form=form)


def _parts(text: str) -> ReplyParts:
    """Take the reply apart; the content of a lone JSON block when that is all there is."""
    parts = read_parts(_markdown(plain_text(text)))
    if len(parts.blocks) == 1 and parts.blocks[0].word == "json" and not parts.edits:
        return read_parts(_markdown(parts.blocks[0].text))
    return parts


def _markdown(text: str) -> str:
    """Return `markdown_of(text)`; strings of JSON may hold by escapes what a text may not."""
    return plain_text(markdown_of(text))


def _require_readable(source: KernelSource) -> None:
    """Refuse what the evaluator would not read as it is meant.

    Raises:
        UnusableReplyError: it is too long, or not the same once it was written as Markdown.
    """
    text = render(source)
    if len(text) > LONGEST_CANDIDATE:
        raise UnusableReplyError(
            f"the candidate has {len(text)} characters, expected at most {LONGEST_CANDIDATE}: "
            "leave out comments and tables"
        )
    try:
        again = split(text)
    except ExtractionError as error:
        raise UnusableReplyError(error.message) from error
    if again != source:
        raise UnusableReplyError(
            "the candidate is another one when it is read again: write plain line ends"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    parts: ReplyParts
    pieces: tuple[Piece, ...]
    language: Language
    parent: KernelSource | None

    @property
    def _devices(self) -> tuple[Piece, ...]:
        kept = [p for p in self.pieces if p.is_whole and not p.is_plan]
        return _unquoted(kept, self.parent.device_code if self.parent else None)

    @property
    def _plans(self) -> tuple[Piece, ...]:
        kept = [p for p in self.pieces if p.is_whole and p.is_plan]
        return _unquoted(kept, self.parent.plan if self.parent else None)

    def whole(self) -> KernelSource | None:
        """Return the last pair of blocks; None without one, or when it only explains edits.

        Raises:
            UnusableReplyError: When the blocks do not belong together.
        """
        devices, plans = self._devices, self._plans
        if not devices or not plans:
            return None
        source = self._source(devices[-1], plans[-1].text, _texts(devices))
        return None if self._explains_edits(source) else source

    def _explains_edits(self, source: KernelSource) -> bool:
        """Return whether blocks only show what is edited, or what the edits make of it."""
        if not self.parts.edits or self.parent is None:
            return False
        shown = [self.parent]
        with suppress(UnusableReplyError):
            shown.append(apply_edits(self.parent, self.parts.edits))
        return any(source.device_code in some.device_code for some in shown) and any(
            source.plan in some.plan for some in shown
        )

    def child(self, *, is_cut: bool) -> KernelSource:
        """Return the parent with the reply's edits, or with the one block that was written.

        Raises:
            UnusableReplyError: When there is no such change, or it is incomplete.
        """
        is_cut = is_cut or self.parts.ends_in_edits or self.parts.ends_in_reasoning
        if self.parts.edits:
            source = self._edited(is_cut=is_cut)
        elif self.parent is not None and not is_cut and (self._devices or self._plans):
            source = self._with_one_block(self.parent)
        else:
            raise UnusableReplyError(self._what_is_missing())
        if source == self.parent:
            raise UnusableReplyError(
                "the reply changes nothing: it gives back the candidate that it was to change"
            )
        return source

    def _edited(self, *, is_cut: bool) -> KernelSource:
        if self.parent is None:
            raise UnusableReplyError(
                "there is no candidate that edits could apply to: reply with a whole one"
            )
        if is_cut:
            raise UnusableReplyError(
                "edits may be missing, so none was applied: reply with all of them again, and "
                "close every block"
            )
        source = apply_edits(self.parent, self.parts.edits)
        if self._plans:
            plan = _written(self._plans[-1], self.parent.plan, source.plan)
            source = replace(source, plan=plan)
        if self._devices:
            device = self._devices[-1]
            code = _written(device, self.parent.device_code, source.device_code)
            if code == device.text:
                return self._source(device, source.plan, (self.parent.device_code,))
        return source

    def _with_one_block(self, parent: KernelSource) -> KernelSource:
        devices = self._devices
        if not devices:
            return replace(parent, plan=self._plans[-1].text)
        return self._source(devices[-1], parent.plan, (*_texts(devices), parent.device_code))

    def _source(self, device: Piece, plan: str, others: tuple[str, ...]) -> KernelSource:
        """Return device code with its plan; `others` may hold kernels that it leaves out."""
        if device.language is not self.language:
            raise UnusableReplyError(
                f"the device code is {device.language}: write it in {self.language}"
            )
        require_all_kernels(device.text, plan, others)
        return KernelSource(language=self.language, device_code=device.text, plan=plan)

    def _what_is_missing(self) -> str:
        if self.parts.ends_in_reasoning:
            return (
                "there is no block of device code and plan behind the reasoning, which is never "
                "closed: think less, and write the candidate after it"
            )
        if self.parent is not None and not self._devices and _DIFF_MARK.search(self.parts.text):
            return "a diff cannot be applied: write SEARCH/REPLACE edits or the whole candidate"
        if not self._devices:
            fragments = [p for p in self.pieces if not p.is_plan]
            what = "there is no block of device code"
            if self.parent is not None:
                what += " and no edit"
            if fragments:
                line = self.parts.line(fragments[-1].block)
                what = f'the device code at line {line} defines no kernel (extern "C")'
            return f"{what}: write all kernels in one ```{self.language} block"
        return "there is no launch plan: write it in a ```python block with def launch(...)"


def _unquoted(pieces: list[Piece], quoted: str | None) -> tuple[Piece, ...]:
    """Drop what only repeats the parent, unless there is nothing else."""
    return tuple([p for p in pieces if p.text != quoted] or pieces)


def _texts(pieces: tuple[Piece, ...]) -> tuple[str, ...]:
    return tuple(piece.text for piece in pieces)


def _written(piece: Piece, before: str, edited: str) -> str:
    """Return the part that a reply with edits also writes out.

    Raises:
        UnusableReplyError: When the edits make something else of it.
    """
    if piece.text in edited or piece.text in before:
        return edited  # shown for explanation
    if edited != before:
        name = "plan" if piece.is_plan else "device code"
        raise UnusableReplyError(
            f"the reply edits the {name} and also writes it out differently: reply with either"
        )
    return piece.text
