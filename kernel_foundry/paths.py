"""Where runs and reports live on this machine; every place can be set by environment.

Knows nothing of what is stored there.
"""

import os
from pathlib import Path
from urllib.parse import quote

import platformdirs

_APP = "kernel-foundry"


def data_dir() -> Path:
    """Return the folder of runs and experience ($KERNEL_FOUNDRY_DATA_DIR or XDG's)."""
    chosen = os.environ.get("KERNEL_FOUNDRY_DATA_DIR")
    return Path(chosen) if chosen else Path(platformdirs.user_data_dir(_APP))


def cache_dir() -> Path:
    """Return the folder of what can be made again ($KERNEL_FOUNDRY_CACHE_DIR or XDG's)."""
    chosen = os.environ.get("KERNEL_FOUNDRY_CACHE_DIR")
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir(_APP))


def store_url() -> str:
    """Return the SQLAlchemy URL of the archive's store ($KERNEL_FOUNDRY_STORE or SQLite)."""
    return os.environ.get("KERNEL_FOUNDRY_STORE") or f"sqlite:///{data_dir() / 'runs.db'}"


def exchanges_dir() -> Path:
    """Return the folder that keeps every exchange with a model."""
    return data_dir() / "exchanges"


def prompts_dir() -> Path | None:
    """Return the folder of a user's own prompt templates ($KERNEL_FOUNDRY_PROMPTS), if any."""
    chosen = os.environ.get("KERNEL_FOUNDRY_PROMPTS")
    return Path(chosen) if chosen else None


def sweeps_dir(run: str) -> Path:
    """Return the folder of the landscapes of a run's sweeps, whatever the run's name."""
    name = quote(run, safe="")
    # ".." is a name of a run, and no folder of its own.
    return data_dir() / "sweeps" / (f"%2E{name[1:]}" if name.startswith(".") else name)


def reports_dir() -> Path:
    """Return the folder of HTML reports."""
    return data_dir() / "reports"


def generator_store_url() -> str:
    """Return the URL of the generator's store ($KERNEL_FOUNDRY_GENERATOR_STORE or SQLite)."""
    chosen = os.environ.get("KERNEL_FOUNDRY_GENERATOR_STORE")
    return chosen or f"sqlite:///{data_dir() / 'generator.db'}"
