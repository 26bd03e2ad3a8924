"""Tasks: a PyTorch reference, the workloads it runs on and how close is right.

`sdk.task_file` reads tasks from files, `evaluator_svc` runs the reference.
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Self

from kernel_foundry.domain.digest import content_digest


class Precision(StrEnum):
    """Data type that inputs and weights are cast to."""

    FP32 = "fp32"
    FP16 = "fp16"
    BF16 = "bf16"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """Bound of an element's error: |a - e| <= atol * scale + rtol * |e|."""

    rtol: float
    """Relative part, dimensionless."""
    atol: float
    """Absolute part, in units of the scale of the element's row (1 where given by hand)."""
    output_shares: tuple[float, ...] = field(default=(), repr=False)
    """What each output is held to, as a share of the above, from 0 (to the last bit) to 1; empty:
    all of it. No part of a task's digest: tasks do not give any."""

    def of(self, output: int) -> Self:
        """Return what one output is held to."""
        share = self.output_shares[output] if self.output_shares else 1.0
        return replace(self, rtol=share * self.rtol, atol=share * self.atol, output_shares=())

    def times(self, factor: float) -> Self:
        """Return the tolerance of every output multiplied by `factor`."""
        return replace(self, rtol=factor * self.rtol, atol=factor * self.atol)

    def is_exact(self, output: int) -> bool:
        """Return whether an output is held to the last bit."""
        return bool(self.output_shares) and self.output_shares[output] == 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """One module-level constant of the task file that a workload overrides."""

    name: str
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One concrete set of shapes."""

    name: str
    """Unique in its task, such as "batch_size=16,dim=1024" or "default"."""
    sizes: tuple[Size, ...] = ()
    held_out: bool = False
    """Never shown to the model and never timed; correctness only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A slow operator to be made fast. Has at least one workload that is not held out."""

    name: str
    reference: str
    """Python text in KernelBench format: Model, get_inputs, get_init_inputs."""
    workloads: tuple[Workload, ...] = (Workload(name="default"),)
    tolerance: Tolerance | None = None
    """None: derived at admission."""
    precision: Precision | None = None
    """What inputs and weights are cast to; None: they stay as the file has them."""
    training: bool = True
    library_ops: tuple[str, ...] = ()
    """Library calls that a plan may make; empty: those of the kind that the reference makes;
    "none" alone: none. `plan.allowed_library_ops` tells which these are."""
    instructions: str = ""
    tf32: bool = False
    """Matrix products and convolutions in float32 may round their operands to TF32, on GPUs."""
    admit_degenerate: bool = False
    """Admit it where trivial answers pass it, too; every verdict then says so."""
    constants: tuple[str, ...] = ()
    """Inputs, parameters and buffers that never change, which a kernel may rely on."""
    least_bits: float = 0.0
    """Fewest effective bits of the outputs against float64; 0: what the tolerance implies."""

    def __post_init__(self) -> None:
        if not any(not w.held_out for w in self.workloads):
            raise ValueError(f"task {self.name}: needs a workload that is not held out")
        if len({w.name for w in self.workloads}) != len(self.workloads):
            raise ValueError(f"task {self.name}: workload names must differ")

    @property
    def digest(self) -> str:
        """Identity of everything that decides a verdict: all but name and instructions."""
        return content_digest(
            self.reference,
            repr(self.workloads),
            repr(self.tolerance),
            (self.precision or Precision.FP32).value,
            repr(self.training),
            repr(self.library_ops),
            # Only where they are set: tasks of before the fields keep their digest.
            *(("tf32",) if self.tf32 else ()),
            *(("cast",) if self.precision is Precision.FP32 else ()),
            *(("degenerate",) if self.admit_degenerate else ()),
            *((f"constants {self.constants!r}",) if self.constants else ()),
            *((f"least_bits {self.least_bits!r}",) if self.least_bits else ()),
        )
