"""Records launches, library calls and memory while a plan is interpreted: the sequence grows here.

Errors carry no line; the interpreter adds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from kernel_foundry.languages import KernelLanguage
from kernel_foundry.plan.arguments import bind_argument, match_parameters
from kernel_foundry.plan.arithmetic import whole
from kernel_foundry.plan.dataflow import PlanDataflow
from kernel_foundry.plan.dtypes import canonical_dtype
from kernel_foundry.plan.errors import bind_error, limit_error, short
from kernel_foundry.plan.geometry import (
    check_cooperative,
    check_extent,
    check_launch,
    check_shared_bytes,
)
from kernel_foundry.plan.library import check_call
from kernel_foundry.plan.limits import (
    ALIGNMENT_BYTES,
    MAX_LAUNCHES,
    MAX_LIBRARY_CALLS,
    MAX_SCRATCH_BUFFERS,
    SCRATCH_SHARE,
)
from kernel_foundry.plan.sequence import (
    Argument,
    BufferSpec,
    Clear,
    Launch,
    LaunchSequence,
    LibraryCall,
    LocalArgument,
    Operand,
    Step,
    TensorOperand,
)
from kernel_foundry.plan.signature import KernelParameter, KernelSignature
from kernel_foundry.plan.values import DeviceLimits, LocalMemory, PlanTensor, Value, describe


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRequest:
    """One launch statement with its values."""

    kernel: str
    setup: tuple[Value, ...]
    """Grid, block and, when given, shared_bytes and "cooperative"."""
    positional: tuple[Value, ...]
    keywords: Mapping[str, Value]
    line: int
    """1-based line in the plan text."""


class Recorder:
    """Collects the buffers and steps of one bind.

    Args:
        kernels: The device code's kernels.
        device: Bounds launches and scratch.
        language: Of the device code.
        outputs: Names of the tensors that the plan has to fill.
        library_ops: Names of the library calls that the task allows.
    """

    def __init__(
        self,
        kernels: tuple[KernelSignature, ...],
        device: DeviceLimits,
        language: KernelLanguage,
        *,
        outputs: tuple[str, ...],
        library_ops: tuple[str, ...],
    ) -> None:
        self._kernels = {kernel.name: kernel for kernel in kernels}
        self._device = device
        self._language = language
        self._buffers: list[BufferSpec] = []
        self._positions: dict[tuple[str, str], int] = {}
        self._steps: list[Step] = []
        self._prepare: list[Step] = []
        self._dataflow = PlanDataflow(outputs)
        self._library_ops = library_ops
        self._launch_count = 0
        self._library_call_count = 0
        self._scratch_count = 0
        self._scratch_bytes = 0

    def end_prepare(self) -> None:
        """Take what was recorded so far for `prepare`."""
        self._prepare, self._steps = self._steps, []
        self._dataflow.end_prepare()

    def finish(self) -> LaunchSequence:
        """Return what was recorded.

        Raises:
            PlanError: `bind` or `limit`, when an output is left without a kernel, or `prepare`
                holds too much.
        """
        buffers = tuple(self._buffers)
        self._dataflow.check_outputs()
        return LaunchSequence(
            buffers=self._dataflow.with_prepared(buffers),
            steps=tuple(self._steps),
            prepare=tuple(self._prepare),
        )

    def launch(self, request: LaunchRequest) -> None:
        """Record a launch.

        Raises:
            PlanError: `bind` or `limit`, when the device or the kernel cannot take it.
        """
        kernel = self._kernel(request.kernel)
        self._launch_count += 1
        if self._launch_count > MAX_LAUNCHES:
            raise limit_error(f"a plan has at most {MAX_LAUNCHES} launches")
        grid = check_extent(request.setup[0], "the grid", kernel)
        block = check_extent(request.setup[1], "the block", kernel)
        check_launch(kernel, grid, block, self._device, self._language)
        shared = request.setup[2] if len(request.setup) > 2 else 0
        shared_bytes = check_shared_bytes(shared, self._device, self._language)
        is_cooperative = len(request.setup) > 3 and check_cooperative(
            request.setup[3], self._language
        )
        given = match_parameters(kernel, request.positional, request.keywords)
        arguments = tuple(
            bind_argument(parameter, value, self._position) for parameter, value in given
        )
        self._check_local_memory(kernel.name, arguments)
        self._note_launch(given)
        self._steps.append(
            Launch(
                kernel=kernel.name,
                grid=grid,
                block=block,
                dimensions=kernel.dimensions,
                shared_bytes=shared_bytes,
                cooperative=is_cooperative,
                arguments=arguments,
                line=request.line,
            )
        )

    def library_call(
        self, name: str, arguments: tuple[Value, ...], keywords: Mapping[str, Value], line: int
    ) -> PlanTensor:
        """Record a library call and return its result.

        Raises:
            PlanError: `policy` when the task does not allow it, `bind` or `limit` for arguments
                that it cannot take.
        """
        call = check_call(name, arguments, keywords, self._library_ops)
        self._library_call_count += 1
        if self._library_call_count > MAX_LIBRARY_CALLS:
            raise limit_error(f"a plan has at most {MAX_LIBRARY_CALLS} library calls")
        output = call.out or self._new_tensor("result", call.dtype, call.shape)
        step = LibraryCall(
            op=name,
            arguments=tuple(self._operand(value) for value in call.arguments),
            keywords=tuple((key, self._operand(value)) for key, value in call.keywords),
            output=self._position(output),
            line=line,
        )
        operands = [value for _, value in call.given if isinstance(value, PlanTensor)]
        self._dataflow.note_library_call(name, operands, output)
        self._steps.append(step)
        return output

    def scratch(
        self, name: str, arguments: tuple[Value, ...], keywords: Mapping[str, Value]
    ) -> PlanTensor:
        """Return new scratch memory for `empty` or `zeros`.

        Raises:
            PlanError: `bind` for a wrong shape or dtype, `limit` for too much memory.
        """
        given = _named_arguments(name, ("shape", "dtype"), arguments, keywords)
        sizes = given[0] if isinstance(given[0], tuple) else (given[0],)
        shape = tuple(whole(size, f"a size in {name}") for size in sizes)
        if any(size < 1 for size in shape):
            raise bind_error(f"a size in {name} must be at least 1: {shape}")
        tensor = self._new_tensor("scratch", _dtype(given[1], name), shape)
        if name == "zeros":
            position = self._position(tensor)
            self._dataflow.note_clear(tensor)
            self._steps.append(Clear(buffer=position, size_bytes=tensor.size_bytes))
        return tensor

    def local(self, arguments: tuple[Value, ...], keywords: Mapping[str, Value]) -> LocalMemory:
        """Return local memory for a SYCL local accessor.

        Raises:
            PlanError: `bind`, for a wrong size or dtype, and in a language without accessors.
        """
        if self._language.without_local:
            raise bind_error(
                f"local(...) is not available in {self._language.title}: "
                f"{self._language.without_local}"
            )
        given = _named_arguments("local", ("n", "dtype"), arguments, keywords)
        count = whole(given[0], "the size in local")
        if count < 1:
            raise bind_error(f"the size in local must be at least 1, not {count}")
        return LocalMemory(count=count, dtype=_dtype(given[1], "local"))

    def _note_launch(self, given: tuple[tuple[KernelParameter, Value], ...]) -> None:
        self._dataflow.note_launch(
            [value for parameter, value in given if isinstance(value, PlanTensor)],
            [v for p, v in given if isinstance(v, PlanTensor) and not p.is_const],
        )

    def _operand(self, value: Value) -> Operand:
        if isinstance(value, PlanTensor):
            return TensorOperand(index=self._position(value), shape=value.shape)
        if isinstance(value, tuple):
            return tuple(self._operand(item) for item in value)
        assert isinstance(value, int | float | str | None)  # the check of the call lets no other in
        return value

    def _new_tensor(
        self, kind: Literal["scratch", "result"], dtype: str, shape: tuple[int, ...]
    ) -> PlanTensor:
        name = f"{kind}{self._scratch_count}"
        self._scratch_count += 1
        tensor = PlanTensor(kind=kind, name=name, dtype=dtype, shape=shape)
        self._account(tensor)
        self._dataflow.note_new(tensor)
        return tensor

    def _check_local_memory(self, kernel: str, arguments: tuple[Argument, ...]) -> None:
        local_bytes = sum(
            argument.element_bytes * argument.count
            for argument in arguments
            if isinstance(argument, LocalArgument)
        )
        if local_bytes > self._device.shared_bytes:
            raise bind_error(
                f"{kernel} asks for {local_bytes} bytes of local memory; the device has "
                f"{self._device.shared_bytes}"
            )

    def _kernel(self, name: str) -> KernelSignature:
        kernel = self._kernels.get(name)
        if kernel is None:
            found = ", ".join(self._kernels) or "none"
            raise bind_error(
                f"there is no kernel {short(name)!r} in the device code; found: "
                f'{short(found, 300)}. A kernel is written extern "C" {self._language.kernel_form} '
                "name(...)"
            )
        return kernel

    def _position(self, tensor: PlanTensor) -> int:
        key = (tensor.kind, tensor.name)
        if key not in self._positions:
            self._positions[key] = len(self._buffers)
            self._buffers.append(
                BufferSpec(
                    kind=tensor.kind,
                    name=tensor.name,
                    dtype=tensor.dtype,
                    shape=tensor.shape,
                    size_bytes=tensor.size_bytes,
                )
            )
        return self._positions[key]

    def _account(self, tensor: PlanTensor) -> None:
        if self._scratch_count > MAX_SCRATCH_BUFFERS:
            raise limit_error(f"a plan has at most {MAX_SCRATCH_BUFFERS} scratch buffers")
        blocks = -(-tensor.size_bytes // ALIGNMENT_BYTES)
        self._scratch_bytes += blocks * ALIGNMENT_BYTES
        allowed = self._device.memory_bytes // SCRATCH_SHARE
        if self._scratch_bytes > allowed:
            raise limit_error(
                f"scratch of {_bytes_text(self._scratch_bytes)} is too large: at most "
                f"{_bytes_text(allowed)} on this device"
            )


def _named_arguments(
    function: str,
    names: tuple[str, str],
    positional: tuple[Value, ...],
    keywords: Mapping[str, Value],
) -> tuple[Value, Value]:
    form = f"{function}({names[0]}, {names[1]})"
    values = dict(zip(names, positional, strict=False))
    if len(positional) > len(names) or set(keywords) & set(values):
        raise bind_error(f"write {form}")
    values.update(keywords)
    if set(values) != set(names):
        raise bind_error(f'write {form}, such as {function}(1024, "float32")')
    return values[names[0]], values[names[1]]


def _dtype(value: Value, function: str) -> str:
    dtype = canonical_dtype(value) if isinstance(value, str) else None
    if dtype is None:
        raise bind_error(
            f'the dtype of {function} must be one such as "float32" or x.dtype, not '
            f"{describe(value)}"
        )
    return dtype


def _bytes_text(size: int) -> str:
    return f"{size / 2**30:.1f} GiB" if 2**30 <= size < 2**80 else f"{size} bytes"
