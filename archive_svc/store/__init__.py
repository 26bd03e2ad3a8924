"""The archive's store: SQLite in WAL mode by default, PostgreSQL by URL."""
