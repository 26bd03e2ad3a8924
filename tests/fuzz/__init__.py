"""Fuzzing of what reads hostile input: the plan, a model's reply, a runner's words, object code.

`python -m tests.fuzz plan --minutes 10` searches with Atheris for inputs that break a reader;
`test_seeds` runs what was kept under `seeds/`, and small changes of it, with every test run.
"""
