"""Which sizes a task's inputs have, what memory they take, and workloads of other sizes."""
