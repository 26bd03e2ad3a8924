"""A suite of tasks as one job: its plan, its queue on disk, its runs, and the field's numbers.

`plan.py` reads what to do, `suite_run.py` does it, `store/` remembers where each run stands. The
verdicts themselves are in the archive. Tasks of other projects are made into task files in
`sdk/task_import`.
"""
