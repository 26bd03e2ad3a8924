"""A kernel language's backend: the facts that the evaluator needs of it.

Facts for plans, prompts and hints are in `kernel_foundry/languages`; the settings of processes and
sandbox for each kind of device are in `evaluator_svc/processes` and `evaluator_svc/sandbox`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from kernel_foundry.domain.language import Language


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """Prelude and compiler options of a language."""

    prelude: str
    """Text that is put before the candidate's device code."""
    options_of: Callable[[str], tuple[str, ...]]
    """Returns the compiler's options, such as include folders, for a device code."""
    safe_options: Callable[[tuple[str, ...]], tuple[str, ...]] = lambda options: options
    """Returns the options for a second try if a build with the given ones fails: with headers that
    the first build leaves out, for instance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageBackend:
    """How candidates are built, inspected and timed, and which times are plausible."""

    language: Language
    device_kinds: tuple[str, ...]
    """Kinds of the native module whose devices run it: "cuda"."""

    runs_on_host_cores: bool
    """Whether its kernels run on the host's cores and in its memory, as on no GPU."""

    toolchain: Callable[[], Toolchain]
    """Called only in builders, since it may load native code."""
    depends_on_driver: bool
    """Whether object code depends on the version of the device's driver."""
    object_reader: str
    """The function by which inspectors read its object code, as "module:function". It takes code,
    assembly, names of kernels and the compiler's log, and returns an `ObjectReport`."""

    headers: frozenset[str]
    """Headers beside the standard ones that device code may include."""
    header_folders: tuple[str, ...]
    """Folders of which it may include all headers."""
    headers_hint: str
    """The allowed headers in words, for messages."""
    rules: frozenset[str]
    """Ids of the policy rules for this language that are not for every language. A new language
    decides about each of those in `evaluator_svc/policy/source_rules.py` and `object_rules.py`."""

    clock: str
    """The clock of its samples in words, for the evidence."""
    is_timed_by_events: bool
    """Whether the device's own events time calls; else the host's clock does."""
    believed_share: float
    """Share of the traffic bound below which a time is suspect; it allows for the error of a
    measured bandwidth."""
    arithmetic_margin: float
    """A speed above this multiple of the arithmetic estimate's is suspect."""
    layout_traffic_multiple: float
    """`prepare` may take this many times the time to move its bytes."""
    layout_launches: float
    """Launches' worth of time that `prepare` may take for each tensor that it makes."""

    has_tf32: bool
    """Whether products of float32 may run on units with ten bits of mantissa."""
    has_warps: bool
    """Whether each work-item has a thread of the hardware; else it is a lane of a vector."""
