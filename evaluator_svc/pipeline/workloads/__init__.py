"""Sizes and value ranges beside those that a task names."""
