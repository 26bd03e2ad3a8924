"""Which sizes a task's inputs have, and the workloads of other sizes that admission generates."""
