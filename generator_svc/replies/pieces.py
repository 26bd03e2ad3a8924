"""Which blocks of a reply are device code and which are plans: by content first, then by tag."""

import re
from dataclasses import dataclass
from typing import Final

from generator_svc.replies.reply_parts import FencedBlock, ReplyParts, UnusableReplyError
from kernel_foundry.domain.language import Language
from kernel_foundry.languages import is_word, language_of_block, languages
from kernel_foundry.plan.candidate_text import (
    CPP_WORDS,
    KERNEL_MARK,
    LAUNCH_MARK,
    PLAN_WORDS,
)

_PYTHON_LINE: Final = re.compile(r"^(?:import[ ]|from[ ]|def[ ])", re.M)
_OTHER_WORDS: Final = frozenset({"diff", "patch", "json"})

_LAUNCHED: Final = re.compile(r"(?<![\w.])([A-Za-z_]\w*+)\s*+\[")
_CALLED: Final = re.compile(r"\b([A-Za-z_]\w*+)\s*+\(")
_MAX_NAMES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A block that is device code or a plan."""

    block: FencedBlock
    language: Language | None
    """Of device code; None for a plan."""
    is_whole: bool
    """It defines a kernel, or `launch`; otherwise it is a fragment."""

    @property
    def text(self) -> str:
        """The content of the block."""
        return self.block.text

    @property
    def is_plan(self) -> bool:
        """Whether it is a plan."""
        return self.language is None


def pieces_of(parts: ReplyParts, language: Language) -> tuple[Piece, ...]:
    """Return device code and plans of a reply; `language` is meant where nothing tells.

    Raises:
        UnusableReplyError: When one is cut off, or both are in one block.
    """
    pieces = []
    for block in parts.blocks:
        piece = _piece(parts, block, language)
        if piece is not None and not block.is_closed:
            raise UnusableReplyError(
                f"the `{block.word}` block that starts at line {parts.line(block)} is never "
                "closed: the reply was cut off"
            )
        if piece is not None:
            pieces.append(piece)
    return tuple(pieces)


def require_all_kernels(device: str, plan: str, others: tuple[str, ...]) -> None:
    """Refuse device code without a kernel that the plan launches and that `others` define.

    Raises:
        UnusableReplyError: When the device code is thus but a part of it.
    """
    launched = set(_LAUNCHED.findall(plan)) - set(_CALLED.findall(device))
    missing = launched & {name for text in others for name in _CALLED.findall(text)}
    if missing:
        names = ", ".join(f"`{name}`" for name in sorted(missing)[:_MAX_NAMES])
        raise UnusableReplyError(
            f"the last block of device code leaves out {names}, which the plan launches: write "
            "all kernels in one block, followed by one ```python block"
        )


def _piece(parts: ReplyParts, block: FencedBlock, language: Language) -> Piece | None:
    if block.word in _OTHER_WORDS:
        return None
    is_device_word = is_word(block.word) or block.word in CPP_WORDS
    is_plan_word = block.word in PLAN_WORDS
    has_launch = bool(LAUNCH_MARK.search(block.text))
    has_kernel = _has_kernel(block.text)
    if has_launch and has_kernel and not (is_device_word or is_plan_word):
        raise UnusableReplyError(
            f"the block that starts at line {parts.line(block)} holds kernels and plan together: "
            f"write the kernels in a ```{language.value} block and the plan in a ```python block"
        )
    if has_launch and not (has_kernel and is_device_word):
        return Piece(block=block, language=None, is_whole=True)
    if is_plan_word and (not has_kernel or _PYTHON_LINE.search(block.text)):
        return Piece(block=block, language=None, is_whole=False)
    if has_kernel or is_device_word:
        own = _language(block, language)
        return Piece(block=block, language=own, is_whole=has_kernel)
    return None


def _has_kernel(text: str) -> bool:
    marks = [record.kernel_mark for record in languages()]
    return any(mark.search(text) for mark in (KERNEL_MARK, *marks))


def _language(block: FencedBlock, asked: Language) -> Language:
    marked = [record for record in languages() if record.mark.search(block.text)]
    if len(marked) == 1:
        return Language(marked[0].name)
    named = language_of_block(block.word, "")
    return Language(named.name) if named else asked
