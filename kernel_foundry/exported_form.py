"""What is asked of an exported file before it is handed out, and what came out."""

from dataclasses import dataclass
from enum import StrEnum

from kernel_foundry.domain.task import Size, Tolerance


class FormEntry(StrEnum):
    """What of an exported file is called where it is used."""

    MODULE = "Module"
    """A class in place of the reference's."""
    MODEL_NEW = "ModelNew"
    """The same under KernelBench's name; it raises where no kernel can run."""
    CUSTOM_KERNEL = "custom_kernel"
    """A function of all inputs, then weights, as one tuple; it returns the outputs."""
    RUN = "run"
    """A function of the inputs, then weights, then of the outputs, which it writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormWorkload:
    """A workload that an exported file is tried on."""

    name: str
    sizes: tuple[Size, ...]
    is_timed: bool
    tolerance: Tolerance


@dataclass(frozen=True, slots=True, kw_only=True)
class FormRequest:
    """An exported file to be tried in a process of its own."""

    text: str
    """Of the file."""
    device: str
    """As torch calls it: "cpu" or "cuda:0"."""
    is_scaled: bool
    """Whether tolerances are in units of each row's scale."""
    workloads: tuple[FormWorkload, ...]
    entry: FormEntry = FormEntry.MODULE
    check: str = ""
    """The task's own check, a function of the reference's text; empty: there is none."""
    compare: bool = True
    """Whether outputs are compared with the reference's by elements."""
    backward: tuple[FormWorkload, ...] = ()
    """That its backward pass is tried on."""
    is_backward_scaled: bool = True
    """As `is_scaled`, of gradients."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormResult:
    """How an exported file did on a workload; times are nanoseconds."""

    name: str
    failure: str = ""
    """Why it is wrong; empty when it is right."""
    error_share: float = 0.0
    """The largest error of an element over what the tolerance allows it, dimensionless; 0 where
    nothing is compared."""
    kernels_ns: tuple[float, float, float] | None = None
    """Of the launches alone, as a verdict times them with warm caches: the median between the
    bounds of its 95 % interval. None when not timed."""
    call_ns: float = 0.0
    """Median of a whole call of the file's entry."""
    host_ns: float = 0.0
    """Median of what such a call takes of the host until it returns. On a CPU, where it returns
    when all is done: with launches that do nothing."""
    graph_ns: float | None = None
    """Median of a whole call as a CUDA graph replays it; None on a CPU, and of an entry that queues
    its work by default, where no graph captures it."""
    fixed_graph_ns: float | None = None
    """The same where the graph is captured within `fixed_weights`; None where the plan lays no
    weights out."""
    eager_ns: float = 0.0
    """Median of a call of the reference's module, on the same tensors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormReport:
    """What came out of trying an exported file."""

    results: tuple[FormResult, ...]
    container: str = ""
    """What the reference returns its results in: "tensor", "tuple" or "list"."""
    mechanisms: tuple[str, ...]
    """What locked its process in."""
    backward: tuple[FormResult, ...] = ()
    """Of its backward pass: a call is autograd's, without the forward pass before it. So is that of
    the reference's module."""
    missing: tuple[str, ...] = ()
    """What could not be had of it, each with its reason."""
