"""Follows tensors from launch to launch: what is set, by whom, and what outlives `prepare`.

The rules: every output depends on a kernel that `launch` launches, what `prepare` hands on is set
there, small, and read only. Errors carry no line.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import TypeAlias

from kernel_foundry.plan.errors import bind_error, limit_error
from kernel_foundry.plan.limits import PREPARED_SHARE
from kernel_foundry.plan.sequence import BufferSpec
from kernel_foundry.plan.values import PlanTensor

_Key: TypeAlias = tuple[str, str]
"""Kind and name of a tensor: a task may call its own tensor `scratch0`."""


class PlanDataflow:
    """Takes note of each step, in order, and refuses those that break a rule.

    Args:
        outputs: Names of the tensors that the plan has to fill.
    """

    def __init__(self, outputs: tuple[str, ...]) -> None:
        self._outputs = outputs
        self._is_prepare = True
        self._has_launch = False
        self._set: set[_Key] = set()
        self._own: set[_Key] = set()
        """Tensors whose contents depend on a kernel that `launch` launches."""
        self._prepared: set[_Key] = set()
        """Tensors made in `prepare`."""
        self._handed_on: set[_Key] = set()
        """Those of them that `launch` uses."""
        self._read_bytes: dict[str, int] = {}
        """Bytes of the tensors of the name table that `prepare` reads."""

    def note_new(self, tensor: PlanTensor) -> None:
        """Take note of a tensor that the plan makes."""
        if self._is_prepare:
            self._prepared.add(_key(tensor))

    def note_clear(self, tensor: PlanTensor) -> None:
        """Take note of a tensor that is cleared."""
        self._set.add(_key(tensor))

    def note_launch(self, passed: Iterable[PlanTensor], written: Iterable[PlanTensor]) -> None:
        """Take note of a launch.

        Args:
            passed: Every tensor given to the kernel.
            written: Those of them that the kernel may write.

        Raises:
            PlanError: `bind`, when it may write what `prepare` has made.
        """
        self._use(passed)
        for tensor in written:
            self._write(tensor)
            if not self._is_prepare and self._is_own_memory(tensor):
                self._own.add(_key(tensor))
        self._has_launch = self._has_launch or not self._is_prepare

    def note_library_call(
        self, op: str, operands: Iterable[PlanTensor], output: PlanTensor
    ) -> None:
        """Take note of a library call.

        Raises:
            PlanError: `bind`, when its result may not go to `output`.
        """
        operands = tuple(operands)
        if not self._is_own_memory(output):
            raise bind_error(
                f"ops.{op}: out={output.name} is neither an output nor memory of the plan: a plan "
                "leaves inputs and weights as they are"
            )
        self._use(operands)
        self._write(output)
        self._own.discard(_key(output))  # the call replaces all that was there
        if any(_key(operand) in self._own for operand in operands):
            self._own.add(_key(output))

    def end_prepare(self) -> None:
        """Take note that all that follows is `launch`."""
        self._is_prepare = False

    def check_outputs(self) -> None:
        """Refuse a plan that leaves an output without a kernel.

        Raises:
            PlanError: `bind`.
        """
        if not self._has_launch:
            raise bind_error("launch launches no kernel: write kernel[grid, block](arguments)")
        for name in self._outputs:
            if ("tensor", name) not in self._set:
                raise bind_error(
                    f"the output {name} is passed to no kernel that may write it: it would stay "
                    "unset"
                )
            if ("tensor", name) not in self._own:
                raise bind_error(
                    f"the output {name} comes from library calls alone: a kernel that launch "
                    "launches must compute it, or what it is computed from"
                )

    def with_prepared(self, buffers: tuple[BufferSpec, ...]) -> tuple[BufferSpec, ...]:
        """Return the buffers, with the kind of those that `prepare` hands on.

        Raises:
            PlanError: `bind` when one is never set, `limit` when they hold too much.
        """
        count = 0
        found = []
        for buffer in buffers:
            key = (buffer.kind, buffer.name)
            if key not in self._handed_on:
                found.append(buffer)
                continue
            if key not in self._set:
                raise bind_error("prepare hands on a tensor that it never fills")
            name = f"prepared{count}"
            found.append(dataclasses.replace(buffer, kind="prepared", name=name))
            count += 1
        self._check_prepared_bytes(
            sum(buffer.size_bytes for buffer in found if buffer.kind == "prepared")
        )
        return tuple(found)

    def _check_prepared_bytes(self, held_bytes: int) -> None:
        read_bytes = sum(self._read_bytes.values())
        allowed = int(PREPARED_SHARE * read_bytes)
        if held_bytes > allowed:
            raise limit_error(
                f"prepare hands {held_bytes} bytes to launch; at most {allowed} are allowed: "
                f"{PREPARED_SHARE} × the {read_bytes} bytes of the tensors that it reads"
            )

    def _use(self, tensors: Iterable[PlanTensor]) -> None:
        for tensor in tensors:
            if self._is_prepare and tensor.kind == "tensor":
                self._read_bytes[tensor.name] = tensor.size_bytes
            elif not self._is_prepare and _key(tensor) in self._prepared:
                self._handed_on.add(_key(tensor))

    def _write(self, tensor: PlanTensor) -> None:
        if not self._is_prepare and _key(tensor) in self._prepared:
            raise bind_error(
                f"{tensor.name} comes from prepare, so launch may only read it: declare the "
                "kernel's parameter const"
            )
        self._set.add(_key(tensor))

    def _is_own_memory(self, tensor: PlanTensor) -> bool:
        return tensor.kind != "tensor" or tensor.name in self._outputs


def _key(tensor: PlanTensor) -> _Key:
    return tensor.kind, tensor.name
