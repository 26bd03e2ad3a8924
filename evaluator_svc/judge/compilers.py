"""What torch.compile starts beside the judge; it begins well before it is needed.

All of it has ended before anything is timed.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from functools import partial
from types import ModuleType

import torch


@contextmanager
def compilers(
    device: torch.device, *, are_wanted: bool, at_once: bool
) -> Iterator[Callable[[], object]]:
    """While active, prepare for torch.compile; yields what waits until all is ready.

    Args:
        device: Of the references.
        are_wanted: Whether anything will be compiled.
        at_once: Whether as many compilers may run as there are cores. Their start takes seconds, so
            it is for what has many kernels. Everywhere else the judge compiles in its own process.
    """
    if not are_wanted:
        yield lambda: None
        return
    from torch._inductor import async_compile, config, cpu_vec_isa

    with ExitStack() as stack:
        if at_once:
            stack.enter_context(config.patch(compile_threads=len(os.sched_getaffinity(0))))
            stack.callback(async_compile.shutdown_compile_workers)
        if device.type == "cuda":
            if at_once:
                async_compile.AsyncCompile.warm_pool()
            yield lambda: None
            return
        thread = stack.enter_context(ThreadPoolExecutor(1, thread_name_prefix="instruction-sets"))
        # What it raises here it raises again where it compiles.
        found = thread.submit(_try_best_instructions, cpu_vec_isa)
        yield partial(wait, [found])


def _try_best_instructions(sets: ModuleType) -> None:
    """Have torch know the best vector instructions that this processor and its compiler have.

    For each set torch builds and loads a program, which takes a compiler seconds at the first time
    and a loader a second later, only to use the first one that works: it is to try no other.
    """
    names = sets.x86_isa_checker()
    has = (each for each in sets.supported_vec_isa_list if set(str(each).split()) <= set(names))
    best = next(filter(None, has), None)  # a set is true if its program works
    if best is not None:
        sets.supported_vec_isa_list[:] = [best]
    sets.valid_vec_isa_list()
