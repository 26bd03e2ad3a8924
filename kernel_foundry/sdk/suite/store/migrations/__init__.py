"""Alembic migrations of the suites."""
