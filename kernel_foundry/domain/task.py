"""Tasks: a PyTorch reference, the workloads it runs on and how close is right.

`sdk.task_file` reads tasks from files, `evaluator_svc` runs the reference.
"""

import ast
import math
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, Self

from kernel_foundry.domain.digest import content_digest

LONGEST_SCALAR: Final = 200
"""Characters of a scalar's value."""

WIDER_THAN_TASK: Final = (
    "the tolerance of a workload has to be within that of the task, which trivial answers are tried"
    " with: give the task's own as the widest of all"
)

CHECK_ALONE: Final = (
    "without a comparison there has to be a check of the task's own, and neither tolerance nor"
    " least_bits, which nothing would be checked against"
)


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
    """The tolerance of each output, as a share of the above, from 0 (to the last bit) to 1; empty:
    all of it. It is not part of a task's digest: tasks do not give it."""
    matched: float = field(default=1.0, repr=False)
    """Share of an output's elements that have to be within the bound; the others may be any
    finite numbers."""

    def of(self, output: int) -> Self:
        """Return the tolerance of one output."""
        share = self.output_shares[output] if self.output_shares else 1.0
        return replace(self, rtol=share * self.rtol, atol=share * self.atol, output_shares=())

    def times(self, factor: float) -> Self:
        """Return the tolerance of every output multiplied by `factor`."""
        return replace(self, rtol=factor * self.rtol, atol=factor * self.atol)

    def is_within(self, other: "Tolerance") -> bool:
        """Return whether whatever it admits is admitted by the other one, too."""
        return self.rtol <= other.rtol and self.atol <= other.atol and self.matched >= other.matched

    def is_exact(self, output: int) -> bool:
        """Return whether an output has to be equal to the last bit."""
        return bool(self.output_shares) and self.output_shares[output] == 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """One module-level constant of the task file that a workload overrides."""

    name: str
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    """One module-level flag, number or word of the task file that a workload overrides."""

    name: str
    text: str
    """The value as Python writes it: "True", "0.5", "-1", "'mean'"."""

    def __post_init__(self) -> None:
        if not is_scalar(self.value):
            raise ValueError(f"scalar {self.name}: no flag, finite number or word: {self.text!r}")

    @property
    def value(self) -> object:
        """The value itself; None where the text is none."""
        if len(self.text) > LONGEST_SCALAR:
            return None
        try:
            return ast.literal_eval(self.text)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            return None


def is_scalar(value: object) -> bool:
    """Return whether a scalar may have the value: a flag, a finite number or a printable word."""
    if isinstance(value, str):
        return value.isprintable()
    if isinstance(value, int):
        return abs(value) < 2**63
    return isinstance(value, float) and math.isfinite(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One concrete set of shapes and scalars."""

    name: str
    """Unique in its task, such as "batch_size=16,dim=1024" or "default"."""
    sizes: tuple[Size, ...] = ()
    held_out: bool = False
    """Never shown to the model and never timed; correctness only."""
    # Shown in no text, so that tasks of before these fields keep their digest.
    scalars: tuple[Scalar, ...] = field(default=(), repr=False)
    weight: float = field(default=1.0, repr=False)
    """How much its speed-up counts in that of the task, beside the weights of the others."""
    tolerance: Tolerance | None = field(default=None, repr=False)
    """Tolerance of its outputs, within the task's own tolerance; None: the task's."""


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
    """Format that inputs and weights are cast to; None: they stay as the file has them."""
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
    check: str = ""
    """Function of the reference's text that looks at outputs as well; empty: there is none."""
    compare: bool = True
    """Whether outputs are compared with the reference's by elements; False: many answers are
    right, and the check alone tells which."""

    def __post_init__(self) -> None:
        if not any(not w.held_out for w in self.workloads):
            raise ValueError(f"task {self.name}: needs a workload that is not held out")
        if len({w.name for w in self.workloads}) != len(self.workloads):
            raise ValueError(f"task {self.name}: workload names must differ")
        if not all(w.weight > 0.0 for w in self.workloads):
            raise ValueError(f"task {self.name}: weights of workloads are above 0")
        if not self.compare and (not self.check or self.tolerance or self.least_bits):
            raise ValueError(f"task {self.name}: {CHECK_ALONE}")
        for workload in self.workloads:
            own = workload.tolerance
            if own and not (self.tolerance and own.is_within(self.tolerance)):
                raise ValueError(f"task {self.name}: {workload.name}: {WIDER_THAN_TASK}")

    def tolerance_of(self, workload: str, admitted: Tolerance) -> Tolerance:
        """Return the tolerance of a workload's outputs; `admitted` is that of the admission."""
        own = next((w.tolerance for w in self.workloads if w.name == workload), None)
        return admitted if own is None else replace(own, output_shares=admitted.output_shares)

    def weight_of(self, workload: str) -> float:
        """Return how much a workload counts; 1 for one that is not the task's own."""
        return next((w.weight for w in self.workloads if w.name == workload), 1.0)

    def scalars_of(self, workload: Workload) -> tuple[Scalar, ...]:
        """Return a workload's scalars; one that was generated has those of the first timed one."""
        if any(own.name == workload.name for own in self.workloads):
            return workload.scalars
        return next(own.scalars for own in self.workloads if not own.held_out)

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
            *((f"check {self.check!r}",) if self.check else ()),
            *(() if self.compare else ("check alone",)),
            *(f"scalars {w.name!r} {w.scalars!r}" for w in self.workloads if w.scalars),
            *(
                (f"matched {self.tolerance.matched!r}",)
                if self.tolerance and self.tolerance.matched != 1.0
                else ()
            ),
            *(
                f"tolerance {w.name!r} {w.tolerance!r} {w.tolerance.matched!r}"
                for w in self.workloads
                if w.tolerance
            ),
            *(f"weight {w.name!r} {w.weight!r}" for w in self.workloads if w.weight != 1.0),
        )
