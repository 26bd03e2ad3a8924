"""Estimates in words, the same on terminals and in reports."""

from kernel_foundry.sdk.statistics.estimate import Estimate


def share_text(found: Estimate | None) -> str:
    """Return a share with its interval: "62 % (55–69)"."""
    if found is None:
        return "–"
    return f"{100 * found.value:.0f} % ({100 * found.low:.0f}–{100 * found.high:.0f})"


def ratio_text(found: Estimate | None) -> str:
    """Return a ratio with its interval: "1.83× (1.62–2.05)"."""
    return "–" if found is None else f"{found.value:.2f}× ({found.low:.2f}–{found.high:.2f})"


def difference_text(found: Estimate | None) -> str:
    """Return a difference of shares in percentage points: "+4 points (−1 to +9)"."""
    if found is None:
        return "–"
    value, low, high = (f"{100 * n:+.0f}" for n in (found.value, found.low, found.high))
    return f"{value} points ({low} to {high})".replace("-", "−")


def number_text(found: Estimate | None) -> str:
    """Return a number with its interval: "21.4 (20.9–22.0)"."""
    return "–" if found is None else f"{found.value:.1f} ({found.low:.1f}–{found.high:.1f})"


def score_text(found: Estimate | None) -> str:
    """Return a number from 0 to 1 with its interval: "0.71 (0.66–0.77)"."""
    return "–" if found is None else f"{found.value:.2f} ({found.low:.2f}–{found.high:.2f})"


def noise_text(found: Estimate | None, same: float) -> str:
    """Return whether an interval leaves room for `same`, the value of no change."""
    if found is None:
        return ""
    return "within noise" if found.low <= same <= found.high else "more than noise"
