"""Sequences with library calls as CUDA graphs: what a user would replay is what is timed.

torch captures, since its calls allocate; launches of the native sequence are captured with them.
Only for devices with graphs. Times are taken in `timing.py`.
"""

import contextlib
from typing import Any

import torch

from evaluator_svc.processes.locked_process import OpenDevice
from evaluator_svc.runner.faults import CandidateFaultError
from evaluator_svc.runner.loaded_sequence import LoadedSequence


def capture_graphs(opened: OpenDevice, loaded: LoadedSequence) -> Any:
    """Return a native sequence that replays one graph for each set, or None.

    None where a call does not let itself be captured: then the calls are timed one by one.
    """
    import kernel_foundry_native as native

    graphs: list[torch.cuda.CUDAGraph] = []
    try:
        for index in range(loaded.set_count):
            graphs.append(_capture(loaded, index, pool=graphs[0].pool() if graphs else None))
    except (RuntimeError, native.NativeError, CandidateFaultError):
        loaded.forget_results()
        return None
    sequence = opened.module.LaunchSequence(opened.device)

    def launch(index: int) -> int:
        graphs[index].replay()
        return 0

    sequence.call(launch, -1)
    for index in range(loaded.set_count):
        sequence.bind(index, loaded.addresses(index))
    return sequence


def _capture(loaded: LoadedSequence, index: int, pool: Any) -> torch.cuda.CUDAGraph:
    """The graph of one set; all share memory, for they never run at once."""
    graph = torch.cuda.CUDAGraph()
    graph.capture_begin(pool=pool, capture_error_mode="thread_local")
    try:
        loaded.native.enqueue(index)
        # Results given back within the capture are memory for the next set's.
        loaded.forget_results()
    except BaseException:
        # The stream must leave its capture; the first error says what went wrong.
        with contextlib.suppress(RuntimeError):
            graph.capture_end()
        raise
    graph.capture_end()
    return graph
