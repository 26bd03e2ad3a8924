"""The stages of an evaluation, from parse and policy to behaviour and diagnosis.

A stage adds what it finds to the draft of the verdict (`evaluation_draft.py`) and returns a failure or None; the first
failure ends the evaluation (`evaluate.py`). The folders are in the order in which they are met:
`build`, `correctness`, `timing`; `sweep` does the same for many configurations at once.
"""
