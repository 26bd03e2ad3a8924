"""How often each mechanism of a run was used: in prompts, on islands, in sweeps, at its end."""

from collections.abc import Mapping

from kernel_foundry.domain.account import RunAccount
from kernel_foundry.domain.archive import ArchiveStats
from kernel_foundry.domain.mechanisms import MIGRATION, SWEEPS

PROMOTION = "promotion"
"""Measurements of what leads at the end of a run; not to be switched off."""


def mechanism_use(
    account: RunAccount | None, stats: ArchiveStats, *, sweeps: int, promotions: int
) -> dict[str, int]:
    """Return the uses of each mechanism that was used, by name, operators included.

    Args:
        account: Of the generator; None: not known, and what prompts held is left out.
        stats: The archive's.
        sweeps: Sweeps that were made.
        promotions: Measurements at the end.
    """
    counted = {} if account is None else {m.mechanism: m.prompts for m in account.mechanisms}
    counted[MIGRATION] = sum(island.migrations for island in stats.islands)
    counted[SWEEPS] = sweeps
    counted[PROMOTION] = promotions
    return {name: count for name, count in counted.items() if count}


def mechanism_text(use: Mapping[str, int]) -> str:
    """Return the counts as one line, the most frequent first."""
    ranked = sorted(use.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in ranked)
