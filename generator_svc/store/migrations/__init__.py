"""Alembic migrations of the generator's store."""
