"""One file for each schema version, oldest first."""
