"""The direction of a selection in words, for prompts."""

from typing import Final

from generator_svc.markdown import clip
from kernel_foundry.domain.archive import Selection
from kernel_foundry.domain.measures import DIMENSIONS, LEVEL_TEXTS, Measures

_MAX_HINT_CHARS: Final = 1_000


def direction_lines(selection: Selection, *, near: str) -> tuple[str, ...]:
    """Return the direction in words, goal before way; empty when the selection gives none.

    `near`: what the language calls the memory of a work-group.
    """
    lines: list[str] = []
    if selection.target is not None:
        parent = selection.parent.measures if selection.parent is not None else None
        lines += _target_lines(selection.target, parent, near)
    if selection.hint:
        lines.append(clip(selection.hint, _MAX_HINT_CHARS))
    return tuple(lines)


def _target_lines(target: Measures, parent: Measures | None, near: str) -> list[str]:
    lines = []
    for name in DIMENSIONS:
        level = getattr(target, name)
        if parent is None or getattr(parent, name) != level:
            means = LEVEL_TEXTS[name][level].format(near=near)
            lines.append(f"Aim at {name} level {level}: {means}.")
    return lines
