"""The stages of an evaluation, from parsing the candidate to diagnosing the result.

A stage adds its findings to the draft of the verdict (`evaluation_draft.py`) and returns a failure
or None. The first failure ends the evaluation (`evaluate.py`). A candidate passes through `build`,
`correctness` and `timing`, in this order; `sweep` takes many configurations through all three.
"""
