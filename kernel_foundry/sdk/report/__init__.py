"""The HTML report of a run: one self-contained file, no scripts, no network."""
