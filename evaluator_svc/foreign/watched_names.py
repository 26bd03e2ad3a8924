"""What a candidate has no reason to change of Python and torch, looked at before and after it ran.

Nothing of ours is timed or compared with these: what a verdict rests on is native or in another
process. Who replaces one of them means to deceive a harness all the same.
"""

import builtins
import gc
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any, Final

import torch
from torch import nn

_NAMES: Final[dict[str, tuple[Any, tuple[str, ...]]]] = {
    "time": (time, ("time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic",
                    "monotonic_ns", "process_time", "sleep")),
    "builtins": (builtins, ("type", "isinstance", "abs", "all", "any", "len", "sum", "min", "max",
                            "id", "__import__")),
    "gc": (gc, ("get_objects", "collect")),
    "torch": (torch, ("allclose", "equal", "isclose", "empty", "empty_like", "randn", "rand",
                      "no_grad", "Tensor", "all", "max", "abs")),
    "torch.testing": (torch.testing, ("assert_close",)),
    "torch.Tensor": (torch.Tensor, ("contiguous", "clone", "copy_", "data_ptr", "to", "cpu",
                                    "allclose", "equal", "__eq__", "__sub__", "abs", "max")),
    "torch.nn.Module": (nn.Module, ("__call__", "load_state_dict", "named_parameters",
                                    "state_dict", "to", "train")),
    "torch.cuda": (torch.cuda, ("Event", "Stream", "synchronize", "current_stream", "stream")),
    "torch.cuda.Event": (torch.cuda.Event, ("record", "elapsed_time", "synchronize", "wait",
                                            "query")),
}  # fmt: skip


class WatchedNames:
    """The state of the process before a candidate; `changes` compares it with that of now."""

    def __init__(self) -> None:
        self._functions = _functions()
        self._settings = _settings()
        self._threads = set(sys._current_frames())

    def changes(self) -> tuple[str, ...]:
        """Return the names that were replaced, and the settings that differ."""
        now = _functions()
        replaced = [
            name
            for name, known in self._functions.items()
            if any(one is not other for one, other in zip(now[name], known, strict=True))
        ]
        differing = [
            f"{name} (was {known}, is {value})"
            for (name, known), value in zip(
                self._settings.items(), _settings().values(), strict=True
            )
            if value != known
        ]
        return (*replaced, *differing)

    def threads(self, folder: Path) -> tuple[str, ...]:
        """Return the names of Python threads that were started since and are in code of a folder.

        Libraries leave threads of their own.
        """
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        started = {
            each: frame
            for each, frame in sys._current_frames().items()
            if each not in self._threads and _is_in(frame, folder)
        }
        return tuple(sorted(names.get(each, "unnamed") for each in started))


def _is_in(frame: FrameType | None, folder: Path) -> bool:
    while frame is not None:
        if Path(frame.f_code.co_filename).is_relative_to(folder):
            return True
        frame = frame.f_back
    return False


def _functions() -> dict[str, tuple[object, object]]:
    """Each function, and its code, which may be replaced in place."""
    return {
        f"{prefix}.{name}": (known := getattr(owner, name), getattr(known, "__code__", None))
        for prefix, (owner, names) in _NAMES.items()
        for name in names
    }


def _settings() -> dict[str, str]:
    matmul = torch.backends.cuda.matmul
    found = {
        "default dtype": torch.get_default_dtype(),
        "threads of torch": torch.get_num_threads(),
        "precision of float32 products": torch.get_float32_matmul_precision(),
        "TF32 in cuDNN": torch.backends.cudnn.allow_tf32,
        "sums of float16 in float16": matmul.allow_fp16_reduced_precision_reduction,
        "sums of bfloat16 in bfloat16": matmul.allow_bf16_reduced_precision_reduction,
        "what is told of each call": (sys.getprofile(), sys.gettrace()),
        "denormals are zero": torch.tensor(1e-39).mul(1.0).item() == 0.0,
    }
    return {name: str(value) for name, value in found.items()}
