"""Estimates with intervals, for suites and for searches on recorded landscapes."""
