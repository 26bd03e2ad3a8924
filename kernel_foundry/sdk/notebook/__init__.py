"""Runs and verdicts as objects that a notebook shows: HTML, data frames, plots.

What is shown is text that models and compilers wrote: it is escaped, and there is no script.
"""
