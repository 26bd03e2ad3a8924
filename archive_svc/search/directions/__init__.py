"""Directions: whether a proposal gets one (`direction.py`), and what it is told to change.

The cell that a direction leads to is chosen in `archive_svc/search/selection.py`.
"""
