"""The loop of a run: ask the archive, propose, evaluate, tell; its budget, lease and progress."""
