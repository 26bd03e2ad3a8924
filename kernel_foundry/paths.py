"""Where runs and reports live on this machine; every place can be set by environment.

Knows nothing of what is stored there.
"""

import os
from pathlib import Path

import platformdirs

_APP = "kernel-foundry"


def data_dir() -> Path:
    """Return the folder of runs and experience ($KERNEL_FOUNDRY_DATA_DIR or XDG's)."""
    chosen = os.environ.get("KERNEL_FOUNDRY_DATA_DIR")
    return Path(chosen) if chosen else Path(platformdirs.user_data_dir(_APP))


def store_url() -> str:
    """Return the SQLAlchemy URL of the archive's store ($KERNEL_FOUNDRY_STORE or SQLite)."""
    return os.environ.get("KERNEL_FOUNDRY_STORE") or f"sqlite:///{data_dir() / 'runs.db'}"


def exchanges_dir() -> Path:
    """Return the folder that keeps every exchange with a model."""
    return data_dir() / "exchanges"


def reports_dir() -> Path:
    """Return the folder of HTML reports."""
    return data_dir() / "reports"
