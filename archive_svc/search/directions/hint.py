"""A direction in words: the steps from a kernel's cell to the target cell, the largest first."""

from archive_svc.search.directions.steps import MeasureStep, has_steps, step
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.measures import DIMENSIONS, Cell


def hint(language: Language, cell: Cell, target: Cell) -> str:
    """Return in words how to get from `cell` to `target`; "" if they are the same.

    For a language without hints it is empty, too.

    The dimension with most levels to go comes first and in full; the others follow, each
    without when it pays and what to beware of.
    """
    moves = [
        (name, level, goal)
        for name, level, goal in zip(DIMENSIONS, cell, target, strict=True)
        if level != goal
    ]
    if not moves or not has_steps(language):
        return ""
    moves.sort(key=lambda move: -abs(move[2] - move[1]))  # stable: else in the grid's order
    steps = [_steps(language, *move) for move in moves]
    (first, *rest), *others = steps
    return " Also: ".join([first.text, *(s.do for s in rest), *(s.do for o in others for s in o)])


def _steps(language: Language, dimension: str, level: int, goal: int) -> list[MeasureStep]:
    """Return the steps to take, the one that matters most first.

    A kernel's level is the highest that any part of it reaches. So the last step up is enough,
    while on the way down every level has to be given up.
    """
    if goal > level:
        return [step(language, dimension, goal - 1, up=True)]
    return [step(language, dimension, at, up=False) for at in range(level, goal, -1)]
