"""What the evaluator has to know of a kernel language.

What plans, prompts and hints need is in `kernel_foundry/languages`; the settings of processes and
sandbox for each kind of device are in `evaluator_svc/processes` and `evaluator_svc/sandbox`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from kernel_foundry.domain.language import Language


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """What every source of a language is built with."""

    prelude: str
    """Text before the candidate's."""
    options_of: Callable[[str], tuple[str, ...]]
    """For the compiler, such as include folders; some depend on the device code."""
    safe_options: Callable[[tuple[str, ...]], tuple[str, ...]] = lambda options: options
    """Options to try again with where a build with these fails, as with headers left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageBackend:
    """How candidates are built, inspected and timed, and which times are plausible."""

    language: Language
    device_kinds: tuple[str, ...]
    """Kinds of the native module whose devices run it: "cuda"."""

    runs_on_host_cores: bool
    """Whether its kernels run on the host's cores and in its memory, as those of no GPU do."""

    toolchain: Callable[[], Toolchain]
    """Called in builders alone: it may load native code."""
    is_object_of_driver: bool
    """Whether object code changes with the device's driver."""
    object_reader: str
    """Where inspectors find the function that reads its object code, as "module:function": it takes
    code, assembly, names of kernels and the compiler's log, and returns an `ObjectReport`."""

    headers: frozenset[str]
    """Headers beside the standard ones that device code may include."""
    header_folders: tuple[str, ...]
    """Folders all of whose headers it may include."""
    headers_hint: str
    """The same in a message."""
    rules: frozenset[str]
    """Ids of the policy rules that are for this language and not for every one. A new language
    decides about each of them: `evaluator_svc/policy/source_rules.py` and `object_rules.py`."""

    clock: str
    """What samples are measured with, for the evidence."""
    is_timed_by_events: bool
    """Whether the device's own events time calls; else the host's clock does."""
    believed_share: float
    """Fraction of the traffic bound below which a time is suspect: how far a measured bandwidth
    may be off."""
    arithmetic_margin: float
    """Maximum credible speed over the arithmetic estimate."""
    layout_traffic_multiple: float
    """`prepare` may take this many times the time to move its bytes."""
    layout_launches: float
    """Launches' worth of time that `prepare` may take for each tensor that it makes."""

    has_tf32: bool
    """Whether products of float32 may run on units with ten bits of mantissa."""
    has_warps: bool
    """Whether each work-item has a thread of the hardware; else it is a lane of a vector."""
