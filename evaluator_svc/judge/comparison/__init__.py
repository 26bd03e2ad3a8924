"""Compares outputs with the reference, explains differences, and audits precision."""
