"""The self-test: probes of a host, and candidates whose verdict is known.

`case.py` says what a case is, `case_folder.py` reads folders of them, `run_cases.py` has them
judged, `rates.py` counts, `run.py` does all of it. The project's own cases lie in `tests/cases`.
"""
