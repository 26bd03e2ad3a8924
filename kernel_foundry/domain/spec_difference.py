"""The differences between a stored run and one that is asked for under its name."""

from dataclasses import fields
from typing import Any, Final

from kernel_foundry.domain.archive import RunSpec
from kernel_foundry.errors import AlreadyExistsError

_SHORT: Final = ("language", "device", "models", "strategy", "seed", "without", "stop_at")
_LONGEST: Final = 80


def another_spec(run: str, difference: str) -> AlreadyExistsError:
    """Return the error of a name that another run has."""
    return AlreadyExistsError(
        f"run {run} exists and differs: {difference}. Choose another name, or resume the run as it "
        "was started",
        run=run,
    )


def spec_difference(there: RunSpec, asked: RunSpec) -> str:
    """Return each field that differs, with both values: "device cuda:0 there, sycl:0 asked for".

    Empty where the two are equal. Of what is long, such as a task, the name of the field alone.
    """
    names = [f.name for f in fields(RunSpec) if getattr(there, f.name) != getattr(asked, f.name)]
    return "; ".join(_field_text(name, there, asked) for name in names)


def _field_text(name: str, there: RunSpec, asked: RunSpec) -> str:
    if name not in _SHORT:
        return name
    one, other = (_value_text(getattr(spec, name)) for spec in (there, asked))
    return f"{name} {one} there, {other} asked for"


def _value_text(value: Any) -> str:
    text = (", ".join(value) or "none") if isinstance(value, tuple) else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
