"""Rows as a pandas data frame; pandas is imported only when one is asked for."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kernel_foundry.errors import PackageMissingError
from kernel_foundry.printable import printable

if TYPE_CHECKING:
    from pandas import DataFrame

_INTERVAL: Final = "_interval"


def data_frame(rows: Sequence[Mapping[str, Any]], index: str) -> "DataFrame":
    """Return a data frame with one row for each mapping.

    An interval [lower, upper] called `x_interval` becomes the columns `x_lower` and `x_upper`.

    Args:
        rows: Objects of `--json`, all with the same names.
        index: The name that becomes the index.

    Raises:
        PackageMissingError: pandas is not installed.
    """
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        raise PackageMissingError(
            f"data frames need pandas: pip install 'kernel-foundry[notebook]' ({error})",
            package="pandas",
        ) from error
    return pd.DataFrame([_flat(row) for row in rows]).set_index(index)


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if name.endswith(_INTERVAL):
            lower, upper = value or (None, None)
            stem = name.removesuffix(_INTERVAL)
            flat[f"{stem}_lower"], flat[f"{stem}_upper"] = lower, upper
        else:
            flat[name] = printable(value) if isinstance(value, str) else value
    return flat
