"""A candidate's Markdown ↔ its `KernelSource`, for users' files and models' replies.

The text may be truncated, chatty, or hold several answers. What is inside the blocks is read by
`parse.py` and `signature.py`; the verdict on a text without a candidate is in
`domain/unreadable_candidate.py`.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import Final

from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.language import Language
from kernel_foundry.languages import fences, language_of_block

# First words behind a fence, lower case, by what the block then is.
CPP_WORDS: Final = frozenset({"cpp", "c++", "cxx", "cc", "c"})
PLAN_WORDS: Final = frozenset({"python", "py", "python3"})
WRAPPER_WORDS: Final = frozenset({"", "markdown", "md", "text"})

# What a block holds that is all of it, not a snippet.
KERNEL_MARK: Final = re.compile(r'\bextern\s*+"C"')
LAUNCH_MARK: Final = re.compile(r"^def[ \t]+launch\b", re.M)

# Possessive quantifiers: a megabyte of tildes or blanks must not be tried at every length.
_FENCE: Final = re.compile(r"^ {0,3}(?P<marks>`{3,}+|~{3,}+)(?P<info>[^`\n]*+)$")
_MAX_LISTED_LINES: Final = 6


class ExtractionReason(enum.StrEnum):
    """Why no candidate could be taken from a text."""

    MISSING_DEVICE_CODE = "missing_device_code"
    MISSING_PLAN = "missing_plan"
    UNCLOSED_BLOCK = "unclosed_block"
    CONFLICTING_BLOCKS = "conflicting_blocks"


class ExtractionError(Exception):
    """No candidate in the text.

    Args:
        reason: Which rule is broken.
        message: What was found and what is expected.
    """

    def __init__(self, reason: ExtractionReason, message: str) -> None:
        super().__init__(reason, message)
        self.reason = reason
        self.message = message

    def __str__(self) -> str:
        """Return the message."""
        return self.message


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    word: str
    """First word after the fence, lower case."""
    text: str
    line: int
    is_closed: bool

    @property
    def language(self) -> str | None:
        """Device language, or None when this is no device code."""
        text = self.text if self.word in CPP_WORDS else ""
        found = language_of_block(self.word, text)
        return found.name if found else None

    @property
    def is_plan(self) -> bool:
        return self.word in PLAN_WORDS


def split(text: str) -> KernelSource:
    """Return the last complete pair of device code and plan in `text`.

    Blocks without a kernel, and Python without `launch`, are taken for illustration when there is
    a better one.

    Raises:
        ExtractionError: When there is none, it is cut off, or it is not clear which one is meant.
    """
    kernel_block, plan_block = _chosen_blocks(text)
    assert kernel_block.language is not None
    return KernelSource(
        language=Language(kernel_block.language),
        device_code=kernel_block.text,
        plan=plan_block.text,
    )


def first_lines(text: str) -> tuple[int, int]:
    """Return the 1-based lines of `text` where device code and plan begin.

    Raises:
        ExtractionError: As `split`.
    """
    kernel_block, plan_block = _chosen_blocks(text)
    return kernel_block.line, plan_block.line


def _chosen_blocks(text: str) -> tuple[_Block, _Block]:
    """Device code and plan of the last complete pair."""
    blocks = _blocks(text.replace("\r\n", "\n"), 1, look_inside=True)
    cut_off = next((b for b in blocks if not b.is_closed and (b.language or b.is_plan)), None)
    if cut_off is not None:
        raise ExtractionError(
            ExtractionReason.UNCLOSED_BLOCK,
            f"the `{cut_off.word}` block that starts at line {cut_off.line} is never closed: the "
            "reply was cut off",
        )
    device = _preferred([b for b in blocks if b.language], KERNEL_MARK)
    plans = _preferred([b for b in blocks if b.is_plan], LAUNCH_MARK)
    if not device:
        raise ExtractionError(
            ExtractionReason.MISSING_DEVICE_CODE,
            f"there is no block of device code: write the kernels in a {fences()} block",
        )
    if not plans:
        raise ExtractionError(
            ExtractionReason.MISSING_PLAN,
            "there is no launch plan: write it in a ```python block with def launch(...)",
        )
    return _last_pair(sorted([*device, *plans], key=lambda b: b.line))


def render(source: KernelSource) -> str:
    """Return the Markdown that `split` takes apart again."""
    runs = re.findall(r"^ {0,3}(`{3,})", f"{source.device_code}\n{source.plan}", re.M)
    fence = "`" * max(3, *(len(run) + 1 for run in runs), 3)
    device_block = f"{fence}{source.language.value}\n{source.device_code}\n{fence}\n"
    return f"{device_block}\n{fence}python\n{source.plan}\n{fence}\n"


def _preferred(blocks: list[_Block], mark: re.Pattern[str]) -> list[_Block]:
    marked = [block for block in blocks if mark.search(block.text)]
    return marked or blocks[-1:]


def _last_pair(blocks: list[_Block]) -> tuple[_Block, _Block]:
    """Pair neighbours of the two kinds, in either order; return the last pair."""
    pair: tuple[_Block, _Block] | None = None
    waiting: list[_Block] = []
    for block in blocks:
        if waiting and waiting[-1].is_plan != block.is_plan:
            other = waiting.pop()
            _refuse_leftover(waiting)
            pair = (block, other) if other.is_plan else (other, block)
            waiting = []
        else:
            waiting.append(block)
    if pair is None or waiting:
        _refuse_leftover(waiting or blocks)
    assert pair is not None  # without a pair something was left over
    return pair


def _refuse_leftover(blocks: list[_Block]) -> None:
    if blocks:
        lines = ", ".join(str(block.line) for block in blocks[:_MAX_LISTED_LINES])
        lines += ", …" if len(blocks) > _MAX_LISTED_LINES else ""
        raise ExtractionError(
            ExtractionReason.CONFLICTING_BLOCKS,
            f"it is not clear which blocks belong together (line {lines} has no partner): write "
            "all kernels in one block, followed by one ```python block",
        )


def _blocks(text: str, first_line: int, *, look_inside: bool) -> list[_Block]:
    found: list[_Block] = []
    lines = text.split("\n")
    index = 0
    while index < len(lines):
        opening = _FENCE.match(lines[index])
        if opening is None:
            index += 1
            continue
        end = _closing(lines, index + 1, opening["marks"])
        content = "\n".join(lines[index + 1 : end])
        words = opening["info"].strip().lower().split()
        block = _Block(
            word=words[0] if words else "",
            text=content,
            line=first_line + index + 1,
            is_closed=end < len(lines),
        )
        # A whole answer inside one outer fence: look inside, one level deep.
        is_wrapper = look_inside and block.word in WRAPPER_WORDS
        inner = _blocks(content, block.line, look_inside=False) if is_wrapper else []
        found.extend(inner or [block])
        index = end + 1
    return found


def _closing(lines: list[str], start: int, marks: str) -> int:
    for index in range(start, len(lines)):
        match = _FENCE.match(lines[index])
        if match and not match["info"].strip() and match["marks"].startswith(marks):
            return index
    return len(lines)
