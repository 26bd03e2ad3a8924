"""Ranks lessons by their match with the query and by their worth.

A lesson whose proposals often failed or got slower sinks below similar ones, but is never removed
for that.
"""

import math
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from generator_svc.experience.columns import LessonColumns, Rows, findings_mask
from kernel_foundry.domain.lesson import LessonQuery
from kernel_foundry.domain.measures import Measures

Scores = npt.NDArray[np.float32]

_KIND_MATCH: Final = 0.20
_SECOND_KIND_SHARE: Final = 0.3
"""Share of the match that depends on how many of the query's kinds a lesson has."""
_LANGUAGE_MATCH: Final = 0.04
"""Bonus of a lesson for this language only, since it names the constructs to use."""
_MEASURES_MATCH: Final = 0.04
_FAR_MEASURES: Final = 4
"""Difference in levels, over all dimensions, at which two cells have nothing in common."""
_DEVICE_MATCH: Final = 0.03

_EFFECT_WEIGHT: Final = 0.15
_FAILURE_WEIGHT: Final = 0.60
_PRIOR_USES: Final = 5.0
"""Uses after which a lesson's own numbers count as much as those of all lessons together."""
_USUAL_FAILURES: Final = 0.3
_COMMON_PRIOR_USES: Final = 20.0
"""Uses of all lessons together after which their measured share of failures counts more than
`_USUAL_FAILURES`."""
_EFFECT_UNIT: Final = math.log(2.0)
"""Mean effect that counts in full: twice as fast. A larger one counts the same."""


def scores(columns: LessonColumns, rows: Rows, similarities: Scores, query: LessonQuery) -> Scores:
    """Return the score of each lesson in `rows`, shape (rows,).

    Args:
        columns: The columns of all lessons.
        rows: Rows of the lessons to rank.
        similarities: Their cosines with the query, shape (rows,).
        query: The query.
    """
    total = (
        similarities
        + _KIND_MATCH * _kind_match(columns, rows, query)
        + _LANGUAGE_MATCH * (columns.column("language", rows) != 0)
        + _MEASURES_MATCH * _closeness(columns, rows, "before", query.before)
        + _MEASURES_MATCH * _closeness(columns, rows, "after", query.target)
        + worth(columns, rows)
    )
    if query.device:
        is_same = columns.column("device", rows) == columns.device(query.device)
        total = total + _DEVICE_MATCH * is_same
    return cast("Scores", total.astype(np.float32))


def worth(columns: LessonColumns, rows: Rows | slice) -> Scores:
    """Return the worth of lessons by effect and failures, relative to the average of all lessons.

    A lesson that was never used has 0. The fewer its uses, the closer to 0 it stays.
    """
    all_uses, all_failures = _numbers(columns, "uses"), _numbers(columns, "failures")
    all_passes = all_uses - all_failures
    mean_effect = float((_numbers(columns, "effect") * all_passes).sum()) / (
        float(all_passes.sum()) + _COMMON_PRIOR_USES
    )
    failure_share = (float(all_failures.sum()) + _USUAL_FAILURES * _COMMON_PRIOR_USES) / (
        float(all_uses.sum()) + _COMMON_PRIOR_USES
    )
    uses, failures = _numbers(columns, "uses", rows), _numbers(columns, "failures", rows)
    passes = uses - failures
    better = (_numbers(columns, "effect", rows) - mean_effect) / _EFFECT_UNIT
    better = np.clip(better, -1.0, 1.0)
    effect = better * passes / (passes + _PRIOR_USES)
    excess = (failures + failure_share * _PRIOR_USES) / (uses + _PRIOR_USES) - failure_share
    # A slow candidate that passes is no merit: few failures count less if the effect is worse.
    excess *= np.where(excess < 0.0, 1.0 + np.minimum(better, 0.0), 1.0)
    return cast("Scores", _EFFECT_WEIGHT * effect - _FAILURE_WEIGHT * excess)


def _kind_match(columns: LessonColumns, rows: Rows, query: LessonQuery) -> Scores:
    if not query.findings:
        return np.zeros(len(rows), dtype=np.float32)
    findings: Any = columns.column("findings", rows)
    shared = np.bitwise_count(findings & findings_mask(query.findings)).astype(np.float32)
    share = shared / len(set(query.findings))
    match = (shared > 0) * (1.0 - _SECOND_KIND_SHARE + _SECOND_KIND_SHARE * share)
    return cast("Scores", match)


def _closeness(columns: LessonColumns, rows: Rows, name: str, asked: Measures | None) -> Scores:
    """Return 1 for an equal cell, less for others, 0 where either side has none."""
    if asked is None:
        return np.zeros(len(rows), dtype=np.float32)
    cells: Any = columns.column(name, rows)
    levels = np.abs(cells.astype(np.int16) - np.array(asked.cell, dtype=np.int16)).sum(axis=1)
    close = np.clip(1.0 - levels / _FAR_MEASURES, 0.0, None)
    return cast("Scores", np.where(cells[:, 0] < 0, 0.0, close).astype(np.float32))


def _numbers(columns: LessonColumns, name: str, rows: Rows | slice = slice(None)) -> Any:
    return columns.column(name, rows).astype(np.float64)
