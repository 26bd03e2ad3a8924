"""Runs the library calls of a plan with torch, on the tensors' own memory.

An operand is a view of a bound address. On a GPU a new result is torch's own memory, which lives
until the next run of its call; on a CPU it goes where the plan's memory has room for it: kernels
there get no address in the heap. Work goes to the native device's stream, so that it keeps its
place among the launches.
"""

import ctypes
import importlib
from collections.abc import Callable, Sequence
from typing import Any, Final

import torch

from evaluator_svc.hardware.openmp import set_threads
from evaluator_svc.runner.faults import CandidateFaultError, fault
from evaluator_svc.runner.library_memory import Stretch, check_held, segments
from evaluator_svc.runner.library_threads import choose_threads
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.plan.library import LIBRARY_OPS
from kernel_foundry.plan.sequence import BufferSpec, LibraryCall, Operand, TensorOperand

_TAKE_OUT: Final = frozenset({"linear", "matmul", "mm", "bmm", "addmm", "baddbmm"})
"""Calls that can write their result themselves."""
_ILLEGAL: Final = ("illegal memory access", "misaligned address", "unspecified launch failure")
"""CUDA reports a kernel's illegal access at the next call, which may be one of torch's."""


class LibraryCalls:
    """The library calls of one sequence.

    Args:
        device: Native device.
        index: Of the device among its kind.
        buffers: The sequence's buffers.
        tf32: Whether the task allows TF32; on the CPU there is none.
    """

    def __init__(
        self, device: Any, index: int, buffers: tuple[BufferSpec, ...], *, tf32: bool
    ) -> None:
        self._buffers = buffers
        self._device = None if device.is_host_memory else torch.device("cuda", index)
        self._sets: dict[int, Sequence[int]] = {}
        self._views: dict[tuple[int, int], torch.Tensor] = {}
        self._results: dict[int, torch.Tensor] = {}
        self._threads = 0
        """Threads of the calls; 0: not chosen yet."""
        _set_precision(tf32=tf32 and self._device is not None)
        if self._device is not None:
            torch.cuda.set_device(self._device)
            # For good: this process has no other work for torch.
            stream = torch.cuda.ExternalStream(  # type: ignore[no-untyped-call]
                device.stream, device=self._device
            )
            torch.cuda.set_stream(stream)

    def choose_threads(self, run: Callable[[], object]) -> None:
        """On a CPU, have as many threads as made `run`, which makes the calls, faster at first."""
        if self._device is not None:
            return
        if self._threads:
            set_threads(self._threads)
        else:
            self._threads = choose_threads(run)

    def bind(self, index: int, addresses: Sequence[int]) -> None:
        """Let set `index` use `addresses`, one for each buffer."""
        self._sets[index] = addresses
        for key in [key for key in self._views if key[0] == index]:
            del self._views[key]

    def step(self, call: LibraryCall) -> Callable[[int], int]:
        """Return what makes the call on a set, and returns the address of a new result, else 0."""
        op = LIBRARY_OPS[call.op]
        function = getattr(importlib.import_module(op.module), op.name)

        def run(index: int) -> int:
            # The old result first: two at a time may be one too many.
            self._results.pop(call.output, None)
            try:
                with torch.inference_mode():
                    return self._run(function, call, index)
            except torch.OutOfMemoryError as error:
                raise _failed(call, error, FindingKind.MEMORY_LIMIT) from error
            except (RuntimeError, ValueError, TypeError, NotImplementedError) as error:
                raise _failed(call, error, FindingKind.PLAN) from error

        return run

    def makes_memory(self, call: LibraryCall) -> bool:
        """Return whether the call's result lies in memory that torch allocates."""
        return self._device is not None and self._buffers[call.output].kind == "result"

    def memory(self) -> tuple[Stretch, ...]:
        """Return all that torch has allocated where kernels could reach it.

        Raises:
            BackendUnavailableError: torch does not tell.
        """
        if self._device is None:
            return ()
        held = segments(self._device.index)
        check_held(self._results.values(), held)
        return held

    def forget_results(self) -> None:
        """Give the memory of the last run's results back."""
        self._results.clear()

    def _run(self, function: Callable[..., torch.Tensor], call: LibraryCall, index: int) -> int:
        arguments = [self._value(value, index) for value in call.arguments]
        keywords = {name: self._value(value, index) for name, value in call.keywords}
        if self.makes_memory(call):
            result = function(*arguments, **keywords).contiguous()
            self._check(result, call.output)
            self._results[call.output] = result
            return result.data_ptr()
        out = self._view(index, call.output)
        if call.op == "linear":
            # Of a matrix the product adds the bias, else torch does in a pass of its own.
            arguments[0], out = _as_matrix(arguments[0]), _as_matrix(out)
        if call.op in _TAKE_OUT:
            function(*arguments, **keywords, out=out)
        else:
            out.copy_(function(*arguments, **keywords))
        return 0

    def _check(self, result: torch.Tensor, position: int) -> None:
        buffer = self._buffers[position]
        dtype = getattr(torch, buffer.dtype)
        if (tuple(result.shape), result.dtype) != (buffer.shape, dtype):
            raise ValueError(
                f"the result is {result.dtype} {tuple(result.shape)}, not {dtype} {buffer.shape}"
            )

    def _value(self, operand: Operand, index: int) -> Any:
        if isinstance(operand, TensorOperand):
            return self._view(index, operand.index).view(operand.shape)
        if isinstance(operand, tuple):
            return tuple(self._value(item, index) for item in operand)
        return operand

    def _view(self, index: int, position: int) -> torch.Tensor:
        result = self._results.get(position)
        if result is not None:
            return result
        key = (index, position)
        if key not in self._views:
            buffer = self._buffers[position]
            memory = self._bytes_at(self._sets[index][position], buffer.size_bytes)
            self._views[key] = memory.view(getattr(torch, buffer.dtype)).view(buffer.shape)
        return self._views[key]

    def _bytes_at(self, address: int, size_bytes: int) -> torch.Tensor:
        if self._device is None:
            memory = (ctypes.c_ubyte * size_bytes).from_address(address)
            return torch.frombuffer(memory, dtype=torch.uint8)
        return torch.as_tensor(_DeviceBytes(address, size_bytes), device=self._device)


class _DeviceBytes:
    """Device memory as torch takes it, with no copy."""

    def __init__(self, address: int, size_bytes: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (size_bytes,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
            "stream": None,  # ordered by the stream that all of this process uses
        }


def _as_matrix(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.view(-1, tensor.shape[-1])


def _set_precision(*, tf32: bool) -> None:
    """Compute as the reference does: plain float32, or TF32 where the task allows it."""
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32


def _failed(call: LibraryCall, error: Exception, kind: FindingKind) -> CandidateFaultError:
    message = str(error).strip().splitlines()
    first = message[0] if message else type(error).__name__
    if any(words in str(error) for words in _ILLEGAL):
        return fault(
            EvaluationOutcome.CRASHED,
            FindingKind.ILLEGAL_ACCESS,
            f"a kernel before ops.{call.op} made an illegal access: {first}",
        )
    text = f"ops.{call.op} failed: {first}"
    return fault(EvaluationOutcome.PLAN_ERROR, kind, text, line=call.line)
