"""The request to the process that runs the model, and its reply."""

from dataclasses import dataclass

from kernel_foundry.sdk.model_bench.measurement import Form, ModelMeasurement


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRequest:
    """A model and the files to swap in."""

    file: str
    model: str
    swaps: tuple[tuple[str, str], ...]
    """Exported file, and class of the modules that it replaces; "" for those of its own source."""
    forms: tuple[Form, ...]
    """None for all that the device has."""
    samples: int
    tolerance: float
    """0 for that of the outputs' type."""
    device: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchReply:
    """The measurement, or why there is none."""

    measurement: ModelMeasurement | None = None
    refusal: str = ""
    field: str = ""
