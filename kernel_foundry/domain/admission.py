"""Admission: what is known of a task on a device before any candidate is made."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.evaluation import Baseline, StageTime
from kernel_foundry.domain.task import Tolerance

_NARROW = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")


def is_narrow(dtype: str) -> bool:
    """Return whether a type has fewer bits of mantissa than float32."""
    return dtype in _NARROW


class TensorRole(StrEnum):
    """Where a named tensor comes from."""

    INPUT = "input"
    PARAMETER = "parameter"
    BUFFER = "buffer"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTensor:
    """A tensor that a plan may name."""

    name: str
    role: TensorRole
    dtype: str
    """As torch spells it without the prefix, such as "float32"."""
    shape: tuple[int, ...]
    path: str = ""
    """Dotted name in the module ("layers.0.weight"); empty for inputs and outputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedScalar:
    """A public scalar of the module that a plan may name."""

    name: str
    literal: str
    """Its value as a Python literal, such as "1e-05", "True", "(2, 2)"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphKeyword:
    """One keyword argument of a graph node; `value` is spelled as in `GraphNode.arguments`."""

    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    """One operator of the exported reference, in execution order."""

    name: str
    """Unique in the graph, such as "add_1"; placeholders carry their name-table name."""
    op: str
    """"placeholder", "output", or the ATen overload such as "aten.add.Tensor"."""
    arguments: tuple[str, ...]
    """Positional: "%name" for another node, else a Python literal."""
    keywords: tuple[GraphKeyword, ...]
    dtype: str
    """Dtype of the result; empty if it is not a tensor."""
    shape: tuple[int, ...]


class Distribution(StrEnum):
    """How inputs, or parameters, are changed to see what ordinary ones hide."""

    LARGE = "large"
    """Multiplied by a large power of two; of each row every second piece by up to twice that."""
    OFFSET = "offset"
    """Moved far from zero, so that differences cancel."""
    ZEROS = "zeros"
    SPARSE = "sparse"
    """Ordinary, with whole stretches of zeros."""
    DENORMAL = "denormal"
    NON_FINITE = "non_finite"
    """NaN and infinity in a few places."""
    SIGNS = "signs"
    """With the sign of half of the elements turned, at random, so that sums cancel."""
    MAGNITUDES = "magnitudes"
    """Each element multiplied by a power of two of its own."""
    INTEGERS = "integers"
    """Odd whole numbers, of 12 and 13 bits in float32."""
    POWERS = "powers"
    """The power of two below each element's magnitude."""
    OUTLIERS = "outliers"
    """Ordinary, with one element of large magnitude at a random place of each row."""
    FEW = "few"
    """One of the inputs zero but for a few elements of each row, the others ordinary: a sum along
    it has few terms, whose errors no average hides."""
    WEIGHTS = "weights"
    """Parameters drawn anew, dense, of both signs and of sizes up to 64 times the usual."""
    USUAL_WEIGHTS = "usual_weights"
    """The same of usual size, where the reference is not defined on larger ones."""
    WEIGHT_OUTLIERS = "weight_outliers"
    """One element of large magnitude at a random place of each row of ordinary parameters."""
    LARGE_INTEGERS = "large_integers"
    """Integer inputs of sizes up to 2^30, in 64 bits 2^40; floats that are whole, larger and with
    fractions; both of both signs where the reference takes them."""
    BLOCKS = "blocks"
    """Two blocks of rows and columns with little between them, on which iterations converge
    slowly, and graphs that are one long cycle; of references that repeat an operator."""
    NEGATIVE = "negative"
    """Below zero as a whole, each row multiplied by a factor of its own, up to 64."""
    ALIKE = "alike"
    """Inputs of the same shape with the same values, rows of them moved by some places, negated or
    differing in a bit; rows of one that is compared with itself likewise."""
    DENSE = "dense"
    """Inputs without the zeros that lie at the same places in every draw."""
    EXTREMES = "extremes"
    """Rows of masks that keep all, nothing or one, or begin or end with a run; NaN where a mask
    leaves it unread; rows of shares with zeros or with a single one, labels that a loss is to
    ignore, places of padding."""
    NEAR_ONE = "near_one"
    """Around one, so that products of many do not vanish; of references that multiply or add up
    many."""
    NEAR_ZERO = "near_zero"
    """A 256th of what is usual, so that products of what is left of one do not vanish; of the same
    references."""
    ABSOLUTE = "absolute"
    """Whole numbers of up to 240, which every format holds, where LARGE does not reach so far; of
    references that give numbers on small whole ones beside negative ones alone, such as powers,
    these."""
    CLOSE = "close"
    """Rows close to one row, so that differences between them are small; of two inputs or more with
    rows of one length, or of one that the reference subtracts from itself."""
    LASTING_WEIGHTS = "lasting_weights"
    """Parameters by which late outputs still follow from early inputs; of references that forget
    with ordinary ones."""
    HUGE = "huge"
    """So large that squares overflow; of references that work element by element and give the same
    multiple of every output, or the same output."""
    TINY = "tiny"
    """So small that squares vanish; of the same references."""
    FAR = "far"
    """Rows of tens of thousands with one sign, rows with runs of minus infinity, or of infinity
    where results may be; in float16 rows of hundreds, whose squares overflow."""
    PLACES = "places"
    """Places and classes of which most are one and neighbours alike, offsets with empty stretches
    and a long one, lengths of zero, one and the whole row with NaN behind."""
    LEVEL = "level"
    """Some rows, columns, samples or channels of one value each; of references that divide. A
    kernel may be inexact there, but gives numbers where the reference does."""
    SMALL = "small"
    """Some of them as small as 2^-24 as a whole, if the reference gives results of the usual size
    then; running variances as small, and of zero."""
    BOUNDS = "bounds"
    """A quarter of the elements at numbers that the reference compares with or cuts off at, beside
    them and beyond; up to the ends of its domain, where ordinary ones stay in the middle."""
    BESIDE_ONE = "beside_one"
    """Rows so close to one that a logarithm is small, down to 2^-20, of references that take one
    of single elements; rows as close to zero, of those that keep the digits of small numbers."""
    ORDERED = "ordered"
    """Rows, and columns, that rise, fall or do both in turn; integers in runs, rows of one integer
    and rows that repeat their beginning."""
    COLUMNS = "columns"
    """As FAR and EXTREMES, for columns in place of rows: a column has one place on the last
    axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueRange:
    """A distribution on which the reference is defined well enough to hold candidates to it."""

    distribution: Distribution
    factor: float
    """Factor of the task's tolerance there, at least 1."""
    is_binding: bool
    """False: a difference is reported, but does not fail a candidate."""
    left_out: tuple[int, ...] = ()
    """Indices of outputs that are not checked there: the reference does not define them well
    enough, or equal values leave a choice of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToleranceDerivation:
    """Where a tolerance comes from; all figures in units of the row's scale."""

    source: str
    """"sidecar", "measured", or "check" where nothing is compared."""
    noise: float
    """Largest error of a reordered evaluation against float64."""
    safety: float
    """Factor on the noise."""
    floor: float
    ceiling: float
    tf32_noise: float = 0.0
    """Errors that TF32 causes, if the task allows it."""
    split_noise: float = 0.0
    """Errors that operands in two bfloat16 parts cause, in tasks of float32."""
    tightened_by: str = ""
    """The trivial answer that the tolerance was tightened to refuse; empty: it was not."""
    workload: str = ""
    """The workload that decided."""
    inexact_because: str = ""
    """Why the reference's own result stands for the exact one, which widens `safety`; empty: the
    reference was computed in float64."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadAdmission:
    """Facts of one workload."""

    workload: str
    held_out: bool
    tensors: tuple[NamedTensor, ...]
    scalars: tuple[NamedScalar, ...]
    graph: tuple[GraphNode, ...]
    """Empty when the reference cannot be exported (said in `Admission.warnings`)."""
    flops: int
    minimal_bytes: int
    """Compulsory traffic: what is used of inputs and parameters read once, outputs written
    once."""
    traffic_bound_ns: float
    """Time to move the compulsory bytes at the device's measured bandwidth, without those that
    caches may keep; nothing is faster."""
    arithmetic_estimate_ns: float
    """The graph's FLOPs at the measured rate of the fastest unit that the tolerance admits. No
    bound: a kernel that computes less, or cheaper, beats it."""
    arithmetic_unit: str
    """The unit that the estimate assumes for products, such as "bf16 x 3 matrix units" or "float32
    FMA"."""
    baselines: tuple[Baseline, ...]
    """Empty for held-out workloads."""
    reference_bytes: int = 0
    """Most device memory that the reference takes while it runs: outputs and temporaries. Where
    torch does not count, the outputs alone."""
    is_generated: bool = False
    """A held-out workload that the task file does not name; a plan may say that it is not meant."""
    is_spare: bool = False
    """A generated one that is tried only where a plan takes none of the others."""
    tolerance_factor: float = 1.0
    """Factor of the task's tolerance there: if rows have a few elements, these may
    be alike by chance, and what cancels is inexact in an honest kernel."""
    value_ranges: tuple[ValueRange, ...] = ()
    """Unusual values on which candidates are tried: on the smallest workload and on all
    that are timed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """A task as a device sees it. A refused one has reasons and may lack workloads."""

    task: str
    """Digest of the task."""
    device: DeviceSpec
    workloads: tuple[WorkloadAdmission, ...]
    tolerance: Tolerance
    refusals: tuple[str, ...] = ()
    """Why no money should be spent on this task; empty when admitted."""
    warnings: tuple[str, ...] = ()
    untried: tuple[str, ...] = ()
    """Values and sizes that candidates are never tried with, which every verdict names. Among the
    warnings too."""
    derivation: ToleranceDerivation | None = None
    """None when the task was refused before there was one."""
    redundancies: tuple[str, ...] = ()
    """Work of the reference that its result does not need, and which flatters every candidate."""
    degeneracies: tuple[str, ...] = ()
    """Why the task is degenerate, where it was to be admitted nevertheless (`admit_degenerate`)."""
    rounding: str = "float32"
    """The narrowest format that the reference's operators round their results to."""
    ignores_mode: bool = False
    """Whether the module computes the same in training and in evaluation mode; False where that is
    not known."""
    products_cancel: bool = False
    """Whether sums of its products cancel on ordinary inputs, so that errors of terms show."""
    stages: tuple[StageTime, ...] = ()
    """Where the time went: loading, answers, value_ranges, graph, compile, baselines, generated,
    redundancies."""

    @property
    def admitted(self) -> bool:
        """True when nothing speaks against the task."""
        return not self.refusals

    @property
    def without_generated(self) -> Self:
        """The same with the workloads alone that the task names."""
        named = tuple(w for w in self.workloads if not w.is_generated)
        return replace(self, workloads=named)

    @property
    def with_graphs(self) -> Self:
        """The same without generated workloads whose graph was not asked for."""
        kept = tuple(w for w in self.workloads if w.graph or not w.is_generated)
        return replace(self, workloads=kept)

    @property
    def is_narrow(self) -> bool:
        """True when the task itself has or computes in fewer bits than float32's."""
        dtypes = {tensor.dtype for workload in self.workloads for tensor in workload.tensors}
        return any(map(is_narrow, {self.rounding, *dtypes}))

    @property
    def has_8_bit_numbers(self) -> bool:
        """True when one of the task's tensors holds numbers of 8 bits."""
        dtypes = {tensor.dtype for workload in self.workloads for tensor in workload.tensors}
        return any(d in ("int8", "uint8") or d.startswith("float8") for d in dtypes)
