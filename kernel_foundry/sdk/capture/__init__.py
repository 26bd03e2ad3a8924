"""Runs a user's program once and makes tasks of the modules that take its time."""
