"""How many of torch's threads the judge works with: one where the work is too small to share.

Threads of a parallel loop spin while they wait for each other. If another program uses a core, a
task of 1 ms takes 10 ms and slows the other program. Timed baselines are not affected;
`baselines.py` also times eager on one thread.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch

from evaluator_svc.hardware.openmp import set_threads
from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload


def threads_for(prepared: Sequence[PreparedWorkload]) -> AbstractContextManager[None]:
    """Have as many threads as work on these workloads is worth."""
    return one_thread() if all(item.is_light for item in prepared) else nullcontext()


@contextmanager
def one_thread() -> Iterator[None]:
    """Have one thread; what a task's own code sets meanwhile stays."""
    threads = torch.get_num_threads()
    set_threads(1)
    try:
        yield
    finally:
        if torch.get_num_threads() == 1:
            set_threads(threads)
