"""Export of winners: a run's fastest kernels as a file or folder for the user's own program.

`export.py` begins it. What is in `runtime/` (Python) and `cpp/` (C++) runs in the user's program,
without this package.
"""
