"""The messages between the supervisor and the process of a foreign kernel.

Runs are asked for with the messages of a runner (`locked.py`): `RunRequest`, `RunAgainRequest`.
"""

from dataclasses import dataclass

from evaluator_svc.messages.draw import Draw
from kernel_foundry.domain.foreign import ForeignSource


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFormRequest:
    """Asks a judge how a workload's reference is constructed and called."""

    draw: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CallForm:
    """Answer to `CallFormRequest`: Python literals, without any tensor's values."""

    constructor: str
    """The arguments of the constructor, a list."""
    arguments: str
    """The arguments of a call, a list of ("value", v), ("tensor", i) and ("tensors", (i, …)), where
    i counts the inputs."""
    training: bool
    """Whether the module is in training mode."""
    cast: str = ""
    """The torch dtype that the task casts its module to; "" if it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignState:
    """One tensor of the reference's state, and its slot in a draw."""

    slot: str
    """Name of the draw's slot."""
    path: str
    """Dotted path in the module."""
    is_parameter: bool
    """False for a buffer. A module without a buffer of that name has constants of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignWorkload:
    """How a candidate is called on one workload."""

    workload: str
    form: CallForm
    state: tuple[ForeignState, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignLoadRequest:
    """Write the sources, and import or build them."""

    source: ForeignSource


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignLoaded:
    """Answer to `ForeignLoadRequest`."""

    load_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignBindRequest:
    """Say how a workload is called, before its first run."""

    workload: ForeignWorkload


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignOpenRequest:
    """Prepare the first seed of a draw for timing without a run before; closes other draws.

    The draw's descriptors travel beside it.
    """

    draw: Draw


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignTimeRequest:
    """Time calls on the inputs of a draw's first seed.

    Only the last call can be kept, and which one will be nobody has decided yet when it is made.
    """

    workload: str
    call_count: int
    flush_bytes: int
    """Read before each call to empty the caches; 0: none."""
    redraw_key: int
    """Decides which values the inputs of the calls have; 0: those that were drawn."""
    one_thread: bool = False
    """With one thread of torch, as eager is timed on a CPU as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignTimes:
    """Answer to `ForeignTimeRequest`, as the process claims it."""

    samples_ns: tuple[float, ...]
    device_ns: tuple[float, ...] = ()
    host_ns: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepRequest:
    """Copy the outputs of the last timed call into the first slots of the first seed."""

    workload: str
    ranks: tuple[int, ...]
    """Number of axes of each output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKept:
    """Answer to `KeepRequest`."""

    orders: tuple[tuple[int, ...], ...]
    """Axes of each output, the one with the largest step in memory first.

    To put the elements in the order of the shape is left to the judge: it may take longer than the
    call, which neither its samples nor an empty kernel would account for.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignStateRequest:
    """Say what the candidate has changed of the process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignChanges:
    """Answer to `ForeignStateRequest`."""

    replaced: tuple[str, ...] = ()
    """Functions of Python and torch that were replaced, and settings that were changed."""
    threads: tuple[str, ...] = ()
    """Names of Python threads that it has started and that still run."""
