"""Directions in words: what to change in a kernel so that it moves towards a cell."""

from archive_svc.hints.hint import hint
from archive_svc.hints.table import Step, step

__all__ = ["Step", "hint", "step"]
