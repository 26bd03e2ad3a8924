"""Inputs and parameters: drawn, laid out in shared regions, changed."""
