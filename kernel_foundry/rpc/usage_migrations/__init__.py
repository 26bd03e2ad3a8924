"""Alembic migrations of the file of what users have used."""
