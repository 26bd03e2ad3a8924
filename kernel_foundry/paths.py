"""Where runs and reports live on this machine; every place can be set by environment.

What may be removed of it is in `sdk/local_files.py`.
"""

import os
from pathlib import Path

import platformdirs

from kernel_foundry.domain.run_name import check_run_name

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
    """Return the folder of the landscapes of a run's sweeps; raises as `check_run_name`."""
    return data_dir() / "sweeps" / _folder_name(run)


def matrix_dir(suite: str) -> Path:
    """Return the folder of verdicts on a suite's winners elsewhere; raises as `check_run_name`."""
    return data_dir() / "matrix" / _folder_name(suite)


def _folder_name(run: str) -> str:
    check_run_name(run)
    # ".." is a name of a run, and no folder of its own.
    return f"%2E{run[1:]}" if run.startswith(".") else run


def tokens_path() -> Path:
    """Return the file of the tokens by which services of this machine know their callers."""
    return data_dir() / "tokens.json"


def ray_token_path() -> Path:
    """Return the file of the token that this user's clusters of Ray ask for."""
    return data_dir() / "ray.token"


def suites_path() -> Path:
    """Return the file that remembers where suites stand."""
    return data_dir() / "suites.db"


def jobs_dir() -> Path:
    """Return the folder of what was submitted."""
    return data_dir() / "jobs"


def reports_dir() -> Path:
    """Return the folder of HTML reports."""
    return data_dir() / "reports"


def report_path(run: str, suffix: str = ".html") -> Path:
    """Return the file of a run's report; raises as `check_run_name`."""
    check_run_name(run)
    return reports_dir() / f"{run}{suffix}"


def suite_report_path(suite: str) -> Path:
    """Return the file of a suite's report; raises as `check_run_name`."""
    return report_path(f"suite.{suite}")


def generator_store_url() -> str:
    """Return the URL of the generator's store ($KERNEL_FOUNDRY_GENERATOR_STORE or SQLite)."""
    chosen = os.environ.get("KERNEL_FOUNDRY_GENERATOR_STORE")
    return chosen or f"sqlite:///{data_dir() / 'generator.db'}"
