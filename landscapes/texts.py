"""Words for people about compared strategies, the same on terminals and in reports."""

from kernel_foundry.sdk.statistics.estimate import Estimate
from landscapes.strategy_results import (
    OverallDifference,
    StrategyDifference,
)


def estimate_text(estimate: Estimate) -> str:
    """Return a count with its interval: "83 [65, 102]"."""
    return f"{estimate.value:.0f} [{estimate.low:.0f}, {estimate.high:.0f}]"


def share_text(estimate: Estimate) -> str:
    """Return a share with its interval: "97 % [91 %, 99 %]"."""
    value, low, high = (f"{100 * n:.0f} %" for n in (estimate.value, estimate.low, estimate.high))
    return f"{value} [{low}, {high}]"


def difference_text(difference: StrategyDifference) -> str:
    """Return a difference of evaluations: "−12.1 [−40.1, +15.4]"; * when it excludes zero."""
    found = difference.evaluations
    numbers = f"{found.value:+.1f} [{found.low:+.1f}, {found.high:+.1f}]".replace("-", "−")
    return f"{numbers} *" if difference.evaluations_excludes_zero else numbers


def ratio_text(estimate: Estimate) -> str:
    """Return a ratio with its interval: "0.62 [0.56, 0.68]"."""
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"


def verdict_text(difference: OverallDifference) -> str:
    """Return what the ratio over all landscapes shows."""
    ratio = difference.evaluations_ratio
    if ratio.high < 1:
        return "needs fewer"
    if ratio.low > 1:
        return "needs more"
    return "no difference shown"
