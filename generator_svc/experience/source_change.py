"""The lines that a child's source adds to its parent's."""

import io
import tokenize
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.plan.source_text import strip_comments

_MOST_LINES: Final = 1_000
"""Most of a text that is compared; the rest is left out."""
_GAP: Final = "..."
_PLAN_MARK: Final = "# plan"
_PLAN_LAYOUT: Final = (tokenize.COMMENT, tokenize.NL)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceChange:
    """The change from one source to another."""

    added: int
    """Lines of the child, new or changed."""
    removed: int
    """Lines of the parent that have no place in the child."""
    device: tuple[tuple[str, ...], ...]
    """Runs of new or changed lines of the child's device code, in order."""
    plan: tuple[tuple[str, ...], ...]
    """The same of its plan."""

    def excerpt(self, most_chars: int) -> str:
        """Return the child's new lines, device code before plan, whole lines only."""
        lines: list[str] = []
        room = most_chars
        for line in _joined(self.device, self.plan):
            room -= len(line) + 1
            if room < 0:
                break
            lines.append(line)
        while lines and lines[-1] in (_GAP, _PLAN_MARK, ""):
            lines.pop()
        return "\n".join(lines)


def does_the_same(parent: KernelSource, child: KernelSource) -> bool:
    """Return whether two sources differ by no more than comments and blanks."""
    codes = [strip_comments(source.device_code).split() for source in (parent, child)]
    plans = [_plan_tokens(source.plan) for source in (parent, child)]
    return codes[0] == codes[1] and plans[0] == plans[1]


def _plan_tokens(plan: str) -> list[str]:
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(plan).readline))
    except (tokenize.TokenError, SyntaxError):  # of a parent that failed
        return plan.split()
    return [token.string for token in tokens if token.type not in _PLAN_LAYOUT]


def change_between(parent: KernelSource, child: KernelSource) -> SourceChange:
    """Return the change from `parent` to `child`."""
    device, device_removed = _new_lines(parent.device_code, child.device_code)
    plan, plan_removed = _new_lines(parent.plan, child.plan)
    return SourceChange(
        added=sum(len(run) for run in (*device, *plan)),
        removed=device_removed + plan_removed,
        device=device,
        plan=plan,
    )


def _new_lines(before: str, after: str) -> tuple[tuple[tuple[str, ...], ...], int]:
    old, new = before.splitlines()[:_MOST_LINES], after.splitlines()[:_MOST_LINES]
    matcher = SequenceMatcher(None, old, new)
    runs, removed = [], 0
    for _, old_start, old_end, new_start, new_end in (
        code for code in matcher.get_opcodes() if code[0] != "equal"
    ):
        removed += max(0, (old_end - old_start) - (new_end - new_start))
        if new_end > new_start:
            runs.append(tuple(new[new_start:new_end]))
    return tuple(runs), removed


def _joined(device: tuple[tuple[str, ...], ...], plan: tuple[tuple[str, ...], ...]) -> list[str]:
    lines: list[str] = []
    for number, run in enumerate(device):
        lines += [*([_GAP] if number else []), *run]
    for number, run in enumerate(plan):
        lines += [_GAP if number else _PLAN_MARK, *run]
    return lines
