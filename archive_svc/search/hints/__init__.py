"""Directions in words: what to change in a kernel so that it moves towards a cell."""
