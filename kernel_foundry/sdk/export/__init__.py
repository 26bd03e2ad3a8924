"""Export of winners: a run's fastest kernels as a file for the user's own program.

`export.py` begins it. What is in `runtime/` runs in the user's program, without this package.
"""
