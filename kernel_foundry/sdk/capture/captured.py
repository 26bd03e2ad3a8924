"""What one run of a user's program tells: its modules' calls, and the texts of their tasks.

The process that runs the program writes it (`process.py`), `capture.py` reads it.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedTensor:
    """One tensor of a call."""

    name: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    """As torch calls it, such as "float32"."""
    itemsize: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedCalls:
    """The calls of a module with inputs of one kind."""

    inputs: tuple[CapturedTensor, ...]
    outputs: tuple[CapturedTensor, ...]
    count: int
    call_ns: float
    """Median; without the first call, which warms up, where there are others."""
    workload: str = ""
    """Of the task; "" where it has none."""

    @property
    def total_ns(self) -> float:
        """What all calls take, the first ones without their warm-up."""
        return self.count * self.call_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedModule:
    """Modules of one class, made with the same arguments and called with inputs of one kind."""

    kind: str
    """The class, such as "LayerNorm"."""
    call: str
    """How it is made, such as "LayerNorm(768, eps=1e-05)", as far as that is known."""
    paths: tuple[str, ...]
    """Where they are in the model, such as "blocks.0.norm"."""
    device: str
    """As torch calls it: "cpu" or "cuda:0"."""
    weight_bytes: int
    """Of parameters and buffers, as far as a call reads them."""
    calls: tuple[CapturedCalls, ...]
    """What took longest first."""
    reference: str = ""
    """The text of a task file without its docstring; "" where `reason` says why there is none."""
    sidecar: str = ""
    reason: str = ""
    notes: tuple[str, ...] = ()
    """What the task does not keep."""

    @property
    def total_ns(self) -> float:
        """What all calls take."""
        return sum(calls.total_ns for calls in self.calls)


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedProgram:
    """One run of a program."""

    exit_code: int
    total_ns: float
    """Of all calls of modules that no other module made."""
    modules: tuple[CapturedModule, ...]
    """What took longest first."""
    refusal: str = ""
    """Why nothing of it was called: its file lacks the model or its inputs."""
