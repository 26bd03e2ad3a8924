"""win@p: the share of all workloads on which a kernel is more than p times faster.

Source: FlashInfer-Bench: over all workloads, the share with baseline latency / latency > p. A
workload without a correct kernel is one that is not won. With one workload in each task it is
fast_p.
"""

import math
from collections.abc import Sequence

from kernel_foundry.sdk.statistics.bootstrap import share
from kernel_foundry.sdk.statistics.estimate import Estimate
from kernel_foundry.sdk.suite.numbers.fast_p import hits

SpeedupsOfRun = Sequence[float | None]
"""Speed-up on each of a task's timed workloads, the same ones for each run; None: not solved."""


def win(tasks: Sequence[Sequence[SpeedupsOfRun]], p: float) -> Estimate:
    """Return win@p over the workloads of `tasks`, at least one, with Wilson's interval.

    A workload of a task with several runs counts by the share of its runs. What a task's workloads
    have in common is one kernel: the interval takes each task for one draw, of the weight that its
    workloads have.
    """
    won = [math.fsum(hits(runs, p) for runs in zip(*task, strict=True)) for task in tasks]
    counts = [len(task[0]) for task in tasks]
    draws = sum(counts) ** 2 / sum(count**2 for count in counts)  # Kish 1965, sec. 8.2
    return share(draws * (math.fsum(won) / sum(counts)), draws)
