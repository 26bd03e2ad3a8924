"""Names of a run's mechanisms; all in `MECHANISMS` can be switched off (`RunSpec.without`).

The strategy, which chooses parents, has names of its own: `archive.STRATEGY_NAMES`. What makes a
verdict honest, such as measuring the winner again, cannot be switched off.
"""

from typing import Final

ISLANDS: Final = "islands"
"""Islands by role, each with an expert of its own; without them there is one grid."""

MIGRATION: Final = "migration"
"""Copying elites to an island that stagnates."""

EXPERTS: Final = "experts"
"""A part of the prompt for each role; without them the general one writes all candidates."""

INSPIRATIONS: Final = "inspirations"
"""Other elites shown beside the parent."""

COMBINE: Final = "combine"
"""Proposals that combine two parents."""

REPAIR: Final = "repair"
"""Proposals that mend a failed candidate."""

TEMPLATISE: Final = "templatise"
"""Proposals that make an elite's constants parameters of a sweep."""

DIRECTION: Final = "direction"
"""Cells to aim at, with a hint in words; only the strategy `gradient` gives any by itself.

A cell that the user pins is one, whatever is switched off."""

DIAGNOSIS: Final = "diagnosis"
"""Findings of a verdict in prompts; without them a prompt shows outcome, times and log."""

SWEEPS: Final = "sweeps"
"""Trying the other configurations of promising candidates."""

PROFILES: Final = "profiles"
"""Profiles of what leads, in prompts as well."""

LESSONS: Final = "lessons"
"""Lessons of earlier candidates in prompts."""

EXPERIENCE: Final = "experience"
"""The whole experience library: no lessons in prompts, and none learnt from the run."""

SIBLINGS: Final = "siblings"
"""What was made of the same parent before, in prompts."""

META_PROMPTS: Final = "meta_prompts"
"""Guidance in prompts that evolves."""

MATERIALS: Final = "materials"
"""Code to start from in prompts of first candidates. Not in `MECHANISMS`: give none instead."""

SHELF: Final = "shelf"
"""Winners of earlier runs: judged first where they bind, and shown in prompts."""

MODEL_WEIGHTS: Final = "model_weights"
"""Which of several models is asked, by what each gained per dollar."""

MECHANISMS: Final = (
    ISLANDS,
    MIGRATION,
    EXPERTS,
    INSPIRATIONS,
    COMBINE,
    REPAIR,
    TEMPLATISE,
    DIRECTION,
    DIAGNOSIS,
    SWEEPS,
    PROFILES,
    LESSONS,
    EXPERIENCE,
    SIBLINGS,
    META_PROMPTS,
    SHELF,
    MODEL_WEIGHTS,
)
