"""Runs kernels of others: Python with torch, in a locked process that may start compilers."""
