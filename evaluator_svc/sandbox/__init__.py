"""What locks builder and runner in: Landlock, seccomp, rlimits, and bubblewrap where present."""
