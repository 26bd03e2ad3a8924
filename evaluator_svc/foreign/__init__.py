"""Runs foreign kernels: Python with torch, in a locked process that may start compilers."""
