"""The loop of a run: select, propose, evaluate, archive; its budget, lease and progress."""
