"""The SOL score: where a kernel stands between its baseline and the speed of light.

Source: SOL-ExecBench: S = 1 / (1 + (T_k - T_sol) / (T_b - T_sol)), with a kernel's time T_k, that
of an optimised baseline T_b and the bound of a roofline T_sol: 0.5 is the baseline, 1 the bound.
"""


def sol_score(kernel_ns: float, baseline_ns: float, bound_ns: float) -> float | None:
    """Return the score on one workload, from 0 to 1; None where the baseline is at the bound.

    A kernel below the bound scores 1: the bound was too high, as one of arithmetic may be.
    """
    gap_ns = baseline_ns - bound_ns
    if gap_ns <= 0:
        return None
    return 1 / (1 + max(kernel_ns - bound_ns, 0.0) / gap_ns)
