"""Inputs and parameters: drawn, laid out in shared buffers, changed."""
